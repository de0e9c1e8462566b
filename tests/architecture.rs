//! Holds the code to the map in `src/lib.rs`.
#[test]
fn x() {}
