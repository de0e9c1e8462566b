//! As much of ZooKeeper's protocol as it takes to know what a request asks for.

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a client's request is to the protocol of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Container, lock and intent in one transaction.
    Begin,
    /// The intent under a lock that was waited for, new or taken over.
    BeginUnderLock,
    /// The end of an attempt that leaves a record: commit or abandon.
    Commit,
    /// The end of an attempt that leaves nothing.
    Release,
    /// A lock node that waits its turn.
    Contend,
    /// A single write, among them heartbeats.
    Write,
    Read,
    /// Pings, watches, authentication, another transaction.
    Other,
}

/// Opcodes, by the names of the server's `ZooDefs.OpCode`.
mod code {
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const GET_CHILDREN: i32 = 8;
    pub(super) const GET_CHILDREN_2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE_2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
}

/// The next packet without its length; `None` at the end of the stream.
pub(crate) async fn read_packet(stream: &mut (impl AsyncRead + Unpin)) -> Option<Bytes> {
    let length = stream.read_i32().await.ok()?;
    let mut packet = vec![0; usize::try_from(length).ok()?];
    stream.read_exact(&mut packet).await.ok()?;
    Some(packet.into())
}

pub(crate) async fn write_packet(
    stream: &mut (impl AsyncWrite + Unpin),
    packet: &Bytes,
) -> Option<()> {
    let length = i32::try_from(packet.len()).ok()?;
    stream.write_all(&[&length.to_be_bytes(), &packet[..]].concat()).await.ok()
}

/// The number that a request and its reply, after the handshake, share.
pub(crate) fn xid(packet: &Bytes) -> i32 {
    packet.clone().get_i32()
}

/// The same reply with the error code of a request that the server does not know.
pub(crate) fn unimplemented(reply: &Bytes) -> Bytes {
    const UNIMPLEMENTED: i32 = -6;
    // Its number and the transaction's, and nothing after the code.
    [&reply[..12], &UNIMPLEMENTED.to_be_bytes()].concat().into()
}

/// The kind of a request after the handshake.
pub(crate) fn kind(packet: &Bytes) -> Kind {
    let mut rest = packet.clone();
    rest.advance(4);
    match rest.get_i32() {
        code::MULTI => kind_of_transaction(&parts(rest)),
        code::CREATE | code::CREATE_2 | code::CREATE_CONTAINER => match flags(rest) {
            EPHEMERAL_SEQUENTIAL => Kind::Contend,
            _ => Kind::Write,
        },
        code::SET_DATA | code::DELETE => Kind::Write,
        code::EXISTS | code::GET_DATA | code::GET_CHILDREN | code::GET_CHILDREN_2 => Kind::Read,
        _ => Kind::Other,
    }
}

const EPHEMERAL_SEQUENTIAL: i32 = 3;

fn kind_of_transaction(parts: &[i32]) -> Kind {
    match parts {
        [code::CREATE_CONTAINER, ..] => Kind::Begin,
        [code::CHECK, ..] => Kind::BeginUnderLock,
        [code::DELETE, code::SET_DATA, ..] => Kind::Commit,
        [code::DELETE, code::DELETE, ..] => Kind::Release,
        _ => Kind::Other,
    }
}

/// The opcodes of a transaction.
fn parts(mut rest: Bytes) -> Vec<i32> {
    let mut parts = Vec::new();
    loop {
        let code = rest.get_i32();
        let is_last = rest.get_u8() != 0;
        rest.advance(4);
        if is_last {
            return parts;
        }
        parts.push(code);
        match code {
            code::CREATE | code::CREATE_2 | code::CREATE_CONTAINER => {
                skip_create(&mut rest);
            }
            code::DELETE | code::CHECK => {
                skip_buffer(&mut rest);
                rest.advance(4);
            }
            code::SET_DATA => {
                skip_buffer(&mut rest);
                skip_buffer(&mut rest);
                rest.advance(4);
            }
            unknown => panic!("a transaction with opcode {unknown}"),
        }
    }
}

fn flags(mut rest: Bytes) -> i32 {
    skip_create(&mut rest)
}

/// Gives the flags.
fn skip_create(rest: &mut Bytes) -> i32 {
    skip_buffer(rest);
    skip_buffer(rest);
    for _ in 0..rest.get_i32() {
        rest.advance(4);
        skip_buffer(rest);
        skip_buffer(rest);
    }
    rest.get_i32()
}

fn skip_buffer(rest: &mut Bytes) {
    // No buffer at all has the length -1.
    rest.advance(usize::try_from(rest.clone().get_i32()).unwrap_or(0) + 4);
}
