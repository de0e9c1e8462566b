//! The audit log misses no decision, whatever becomes of the one who asked for it.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::support::{Harness, id};

/// What was logged, a line each.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn audits(&self) -> Vec<Value> {
        let lines = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["target"] == "audit").collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_whose_client_hangs_up_at_any_moment_is_audited() {
    let mut made = 0;
    for offset in 0..20 {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || writer.clone())
            .finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let harness = Harness::slow(Duration::from_millis(2));
        harness.left_unknown(1).await;
        let target = format!("/api/v1/keys/{}/release", id(1));
        let why = json!({ "reason": "it did not run", "actor": "alice" });

        let answer = timeout(Duration::from_millis(offset), harness.post(&target, &why)).await;
        sleep(Duration::from_secs(1)).await;

        let is_released = harness.get(&format!("/api/v1/keys/{}", id(1))).await.status == 404;
        let audits = lines.audits();
        assert_eq!(audits.len(), usize::from(is_released), "after {offset} ms: {audits:?}");
        assert!(is_released || answer.is_err());
        made += audits.len();
        for audit in audits {
            assert_eq!((&audit["result"], &audit["actor"]), (&json!("done"), &json!("alice")));
            assert_eq!((&audit["key_id"], &audit["peer"]), (&json!(id(1)), &json!("127.0.0.1:5")));
        }
    }
    assert!(made > 10, "{made}");
}
