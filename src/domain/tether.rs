//! Ties what has become of a client's connection to the listener that let it in.

use std::convert::Infallible;

use tokio::sync::mpsc;

/// Among the extensions of a request that asks to switch protocols: whoever takes the connection
/// over keeps it, and with it the connection's place, until the connection ends.
#[derive(Clone, Debug)]
pub struct Tether(mpsc::Sender<Infallible>);

/// The listener's end. Dropping it asks for the end of the connection.
#[derive(Debug)]
pub struct Tethered(mpsc::Receiver<Infallible>);

// === impl Tether ===

impl Tether {
    pub fn new() -> (Self, Tethered) {
        let (tether, tethered) = mpsc::channel(1);
        (Self(tether), Tethered(tethered))
    }

    /// Resolves when the connection must end. Cancel safe.
    pub async fn cut(&self) {
        self.0.closed().await;
    }
}

// === impl Tethered ===

impl Tethered {
    /// Resolves when every clone of the [`Tether`] is gone: at once if nobody took it. Cancel safe.
    pub async fn released(&mut self) {
        // Nothing is ever sent, so the first news is that nobody is left to send.
        self.0.recv().await;
    }
}
