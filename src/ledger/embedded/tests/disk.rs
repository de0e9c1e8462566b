//! A disk that fails on command, and that loses what was not synced.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use redb::StorageBackend;

use crate::ledger::embedded::store::file::{Opener, Purpose};

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    contents: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync.
    pending: Vec<Write>,
    failing: bool,
    /// How many more writes and syncs succeed before one fails.
    patience: Option<usize>,
    failed: bool,
    /// Whether a failing sync has reached the disk all the same.
    lies: bool,
    syncs: usize,
    opened: usize,
    /// How long it takes to be opened.
    delay: Duration,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes { offset: usize, data: Vec<u8> },
    Length(usize),
}

// === impl Disk ===

impl Disk {
    pub(super) fn opener(&self) -> Opener {
        let disk = self.clone();
        Opener::with_backend(PathBuf::from("/disk"), move |_, _: Purpose| {
            disk.open()?;
            Ok(Box::new(disk.clone()))
        })
    }

    pub(super) fn fail(&self, failing: bool) {
        let mut state = self.state();
        state.failing = failing;
        state.patience = None;
    }

    /// Lets one write or sync fail after this many; the sync that fails may have worked.
    pub(super) fn fail_after(&self, patience: usize, lies: bool) {
        let mut state = self.state();
        state.patience = Some(patience);
        state.lies = lies;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state().failed
    }

    /// Puts a copy of another disk's contents in the place of its own.
    pub(super) fn replace(&self, other: &Self) {
        let contents = other.contents();
        let mut state = self.state();
        state.synced.clone_from(&contents);
        state.contents = contents;
        state.pending.clear();
    }

    /// How often it was opened, or tried to.
    pub(super) fn opened(&self) -> usize {
        self.state().opened
    }

    pub(super) fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// What is left after the power is cut: all that was synced, and of the rest what `survives`.
    pub(super) fn cut(&self, mut survives: impl FnMut() -> bool) -> Self {
        let state = self.state();
        let mut contents = state.synced.clone();
        for write in &state.pending {
            if survives() {
                write.apply(&mut contents);
            }
        }
        drop(state);
        Self::holding(contents)
    }

    /// What is left after `kill -9`: the kernel has all that was written.
    pub(super) fn kill(&self) -> Self {
        Self::holding(self.state().contents.clone())
    }

    pub(super) fn holding(contents: Vec<u8>) -> Self {
        let state = State { synced: contents.clone(), contents, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn contents(&self) -> Vec<u8> {
        self.state().contents.clone()
    }

    /// Makes it slow to be opened.
    pub(super) fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    fn open(&self) -> io::Result<()> {
        let mut state = self.state();
        state.opened += 1;
        let delay = state.delay;
        state.check()?;
        drop(state);
        thread::park_timeout(delay);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

// === impl State ===

impl State {
    fn check(&self) -> io::Result<()> {
        if self.failing {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn spend(&mut self) -> io::Result<()> {
        self.check()?;
        let Some(patience) = self.patience else { return Ok(()) };
        self.patience = patience.checked_sub(1);
        if self.patience.is_none() {
            self.failed = true;
            return Err(io::Error::other("the device failed"));
        }
        Ok(())
    }

    fn write(&mut self, write: Write) -> io::Result<()> {
        self.spend()?;
        write.apply(&mut self.contents);
        self.pending.push(write);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let spent = self.spend();
        if spent.is_ok() || self.lies {
            self.synced = self.contents.clone();
            self.pending.clear();
            self.syncs += 1;
        }
        spent
    }
}

// === impl Write ===

impl Write {
    fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, data } => {
                let end = offset + data.len();
                if contents.len() < end {
                    contents.resize(end, 0);
                }
                contents[*offset..end].copy_from_slice(data);
            }
            Self::Length(length) => contents.resize(*length, 0),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().contents.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        state.check()?;
        let offset = usize::try_from(offset).unwrap();
        let bytes = state.contents.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.state().write(Write::Length(usize::try_from(length).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state().sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.state().write(Write::Bytes { offset, data: data.to_vec() })
    }
}
