//! Makes the nodes that every key needs above it.

use std::collections::HashSet;

use zookeeper_client::CreateMode;

use super::{
    OpenError,
    client::Client,
    fault::{Fault, Refusal},
    paths::Layout,
};

/// Root, shards and `gateways`. One read if they are there.
pub(super) async fn prepare(client: &Client, layout: &Layout) -> Result<(), OpenError> {
    let there: HashSet<String> = match client.children(layout.root()).await {
        Ok(children) => children.into_iter().collect(),
        Err(Fault::Refused { refusal: Refusal::NoNode, .. }) => {
            root(client, layout).await?;
            HashSet::new()
        }
        Err(fault) => return Err(OpenError::root(layout, &fault)),
    };
    let shards = (0..Layout::SHARDS).map(|number| layout.shard(number));
    let wanted = shards.chain([layout.gateways()]);
    let missing: Vec<String> =
        wanted.filter(|path| !there.contains(super::paths::name_of(path))).collect();
    // Some at a time, so that the other requests of the session get through.
    for some in missing.chunks(64) {
        let mut creations = Vec::new();
        for path in some {
            creations.push(Box::pin(create(client, path)));
        }
        for creation in join_all(creations).await {
            creation.map_err(|fault| OpenError::root(layout, &fault))?;
        }
    }
    Ok(())
}

async fn root(client: &Client, layout: &Layout) -> Result<(), OpenError> {
    let root = layout.root();
    let ends = root.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at);
    for end in ends.chain([root.len()]) {
        create(client, &root[..end]).await.map_err(|fault| OpenError::root(layout, &fault))?;
    }
    Ok(())
}

/// A node that may be there already.
pub(super) async fn create(client: &Client, path: &str) -> Result<(), Fault> {
    match client.create(path, b"", CreateMode::Persistent).await {
        Err(fault) if !fault.is_refused_with(&Refusal::NodeExists) => Err(fault),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// All of them at once, in order.
async fn join_all<T>(mut futures: Vec<std::pin::Pin<Box<impl Future<Output = T>>>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut is_ready = true;
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
