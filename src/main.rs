//! The program: hands the arguments to the library and its verdict to the shell.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    oncegate::cli::main()
}
