//! kazoo, a ZooKeeper client that is not ours: it reads what is stored and contends for locks.

use std::{collections::BTreeMap, net::SocketAddr, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::Ensemble;
use crate::shared::soon;

/// A session of its own, which ends with the test.
#[derive(Debug)]
pub(crate) struct Peer {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// A node as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) data: String,
    pub(crate) is_ephemeral: bool,
    /// The session whose node it is; 0 for one of nobody.
    pub(crate) owner: i64,
    pub(crate) version: i64,
}

// === impl Peer ===

impl Peer {
    pub(crate) fn of(ensemble: &Ensemble) -> Self {
        Self::at(ensemble.servers())
    }

    pub(crate) fn at(servers: &[SocketAddr]) -> Self {
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zookeeper/peer.py");
        // Debian's python: kazoo is its package.
        let mut process = Command::new("/usr/bin/python3")
            .args([script, &servers.join(",")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, input, output }
    }

    /// Sends a command without waiting for its answer.
    async fn send(&mut self, command: &Value) {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, to: &str) -> Result<Value, String> {
        let line = soon(to, self.output.next_line()).await.unwrap();
        let mut answer: Value = serde_json::from_str(&line.expect("an answer of kazoo")).unwrap();
        match answer.get_mut("ok") {
            Some(answer) => Ok(answer.take()),
            None => Err(answer["error"].as_str().unwrap().to_owned()),
        }
    }

    async fn call(&mut self, command: Value) -> Result<Value, String> {
        self.send(&command).await;
        self.answer(&command.to_string()).await
    }

    /// Every node below `path`.
    pub(crate) async fn tree(&mut self, path: &str) -> BTreeMap<String, Node> {
        let tree = self.call(json!({ "do": "tree", "path": path })).await.unwrap();
        let nodes = tree.as_object().unwrap().iter();
        nodes.map(|(path, node)| (path.clone(), Node::read(node))).collect()
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Node, String> {
        let node = self.call(json!({ "do": "get", "path": path })).await?;
        Ok(Node::read(&node))
    }

    /// What this client's server has, which may be old.
    pub(crate) async fn look(&mut self, path: &str) -> Result<Node, String> {
        let node = self.call(json!({ "do": "look", "path": path })).await?;
        Ok(Node::read(&node))
    }

    /// `data` is hexadecimal.
    pub(crate) async fn set(&mut self, path: &str, data: &str) {
        self.call(json!({ "do": "set", "path": path, "data": data })).await.unwrap();
    }

    pub(crate) async fn create(&mut self, path: &str) -> Result<(), String> {
        self.call(json!({ "do": "create", "path": path })).await.map(drop)
    }

    /// Deletes one node and sets the other in one transaction.
    pub(crate) async fn end(&mut self, lock: &str, record: &str, data: &str) -> Result<(), String> {
        let command = json!({ "do": "end", "lock": lock, "record": record, "data": data });
        self.call(command).await.map(drop)
    }

    pub(crate) async fn delete(&mut self, path: &str) {
        self.call(json!({ "do": "delete", "path": path })).await.unwrap();
    }

    /// Until the node does not exist.
    pub(crate) async fn gone(&mut self, path: &str) {
        self.call(json!({ "do": "gone", "path": path })).await.unwrap();
    }

    /// Takes the lock whose nodes stand below `path`, and waits for its turn.
    pub(crate) async fn acquire(&mut self, path: &str) {
        self.contend(path).await;
        self.acquired().await;
    }

    /// Asks for the lock; [`acquired`](Self::acquired) waits for it.
    pub(crate) async fn contend(&mut self, path: &str) {
        self.send(&json!({ "do": "acquire", "path": path })).await;
    }

    pub(crate) async fn acquired(&mut self) {
        assert_eq!(self.answer("kazoo's turn").await, Ok(json!(true)));
    }

    /// Whether no answer has come yet.
    pub(crate) fn is_waiting(&mut self) -> bool {
        let mut answer = tokio_test::task::spawn(self.output.next_line());
        answer.poll().is_pending()
    }

    pub(crate) async fn release(&mut self) {
        self.call(json!({ "do": "release" })).await.unwrap();
    }
}

// === impl Node ===

impl Node {
    fn read(node: &Value) -> Self {
        Self {
            data: node["data"].as_str().unwrap().to_owned(),
            is_ephemeral: node["owner"] != 0,
            owner: node["owner"].as_i64().unwrap(),
            version: node["version"].as_i64().unwrap(),
        }
    }
}
