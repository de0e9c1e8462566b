//! Tells what a gateway would find, without opening the ledger for it.

use super::{
    Durability, Settings,
    store::file::{Look, look},
};
use crate::ledger::Finding;

/// Blocks: it reads from the file. A running gateway goes on undisturbed; one that starts at this
/// very moment may find the file in use.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    let subject = "ledger";
    let Durability::Fsync { path } = &settings.durability else {
        let detail = "embedded, in memory: a restart forgets every key; set \
                      ledger.embedded.durability to fsync unless this is a test";
        return vec![Finding::doubtful(subject, detail)];
    };
    let told = format!("embedded, {} with durability fsync", path.display());
    let finding = match look(path) {
        Ok(Look::Closed { bytes }) => {
            Finding::good(subject, format!("{told}: {bytes} bytes, can be opened"))
        }
        Ok(Look::InUse) => {
            Finding::good(subject, format!("{told}: held by a running process, as it should be"))
        }
        Ok(Look::Missing) => {
            Finding::good(subject, format!("{told}: is not there yet, the first start makes it"))
        }
        Ok(Look::Killed { bytes }) => Finding::doubtful(
            subject,
            format!(
                "{told}: {bytes} bytes, not closed in good order; the next start repairs it, and \
                 what was in progress is unknown then (`oncegate keys list --state unknown`)"
            ),
        ),
        Err(error) => Finding::bad(subject, crate::telemetry::Chain(&error).to_string()),
    };
    vec![finding]
}
