//! Puts a body's pieces together, without a copy where it came in one.

use bytes::{Bytes, BytesMut};

/// Pieces of a body. The usual single piece is kept as it is.
#[derive(Default)]
pub(super) struct Gathered {
    first: Bytes,
    /// Empty unless there is more than one piece; then it holds the first too.
    all: BytesMut,
}

// === impl Gathered ===

impl Gathered {
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&piece);
    }

    pub(super) fn len(&self) -> u64 {
        (self.first.len() + self.all.len()) as u64
    }

    pub(super) fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order() {
        for pieces in [&[][..], &["a"], &["", "a"], &["a", "", "b"], &["a", "b", "c"]] {
            let mut gathered = Gathered::default();
            for piece in pieces {
                gathered.push(Bytes::from_static(piece.as_bytes()));
            }
            assert_eq!(gathered.len(), pieces.concat().len() as u64);
            assert_eq!(gathered.into_bytes(), pieces.concat());
        }
    }
}
