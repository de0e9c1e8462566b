//! The command line: what each command does, and which exit code says how it went.

mod arguments;
mod commands;
mod doctor;
mod keys;

use std::process::ExitCode;

use clap::Parser;

use self::arguments::{Arguments, Command};

/// How a command ended, for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Success,
    /// The command could not do what it was asked to.
    Failure,
    /// The configuration, or the command line, has mistakes.
    Usage,
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let exit = match Arguments::parse().command {
        Command::Serve { config } => commands::serve(&config),
        Command::Demo(demo) => commands::demo(&demo),
        Command::Check { config } => commands::check(&config),
        Command::Schema => commands::schema(),
        Command::Doctor { config } => commands::doctor(&config),
        Command::Keys(keys) => commands::keys(&keys),
        Command::Health { admin } => commands::health(&admin),
    };
    exit.into()
}

// === impl Exit ===

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => Self::SUCCESS,
            Exit::Failure => Self::from(1),
            // As clap's own for a wrong command line.
            Exit::Usage => Self::from(2),
        }
    }
}
