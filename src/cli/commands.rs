//! What each command does. The only place that writes to the terminal.

use std::{
    error::Error,
    fmt::Display,
    io::{self, Write},
    path::Path,
};

use tokio::runtime::Runtime;

use super::{
    Exit, arguments, doctor,
    keys::{self, Keys, Said},
};
use crate::{
    admin, app,
    config::{self, Loaded, ProcessEnvironment},
    demo,
    ledger::Grade,
    telemetry::Chain,
};

pub(super) fn serve(file: &Path) -> Exit {
    let Loaded { config, warnings } = match config::load(file, &ProcessEnvironment) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            say(io::stderr(), config::render_mistakes(&mistakes));
            return Exit::Usage;
        }
    };
    let program = app::Program { config, file: Some(file.to_owned()), warnings };
    with_runtime(async { app::run(program, |_addresses| ()).await })
}

pub(super) fn demo(arguments: &arguments::Demo) -> Exit {
    let settings =
        demo::Settings { listen: arguments.listen, api: arguments.api, admin: arguments.admin };
    with_runtime(async { demo::run(settings, |tour| say(io::stdout(), tour)).await })
}

pub(super) fn check(file: &Path) -> Exit {
    let report = config::check(file, &ProcessEnvironment);
    say(io::stdout(), &report.text);
    if report.passes { Exit::Success } else { Exit::Usage }
}

pub(super) fn doctor(file: &Path) -> Exit {
    let loaded = match config::load(file, &ProcessEnvironment) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            say(io::stderr(), config::render_mistakes(&mistakes));
            return Exit::Usage;
        }
    };
    let runtime = Runtime::new();
    let examined = runtime.and_then(|runtime| runtime.block_on(app::doctor(&loaded.config)));
    match examined {
        Ok(mut findings) => {
            findings.insert(0, doctor::configuration(file, &loaded.warnings));
            say(io::stdout(), doctor::table(&findings));
            let fails = findings.iter().any(|finding| finding.grade == Grade::Bad);
            if fails { Exit::Failure } else { Exit::Success }
        }
        Err(error) => {
            say(io::stderr(), format_args!("oncegate: {}\n", Chain(&error)));
            Exit::Failure
        }
    }
}

pub(super) fn schema() -> Exit {
    say(io::stdout(), config::schema());
    Exit::Success
}

pub(super) fn health(url: &str) -> Exit {
    with_runtime(admin::health_check(url))
}

pub(super) fn keys(command: &Keys) -> Exit {
    let done = match Runtime::new() {
        Ok(runtime) => runtime.block_on(keys::run(command)),
        Err(error) => Err(keys::Failed::Refused(Chain(&error).to_string())),
    };
    match done {
        Ok(Said { text, note }) => {
            say(io::stdout(), text);
            say(io::stderr(), note);
            Exit::Success
        }
        Err(keys::Failed::Usage(text)) => {
            say(io::stderr(), format_args!("oncegate: {}\n", text.trim_end()));
            Exit::Usage
        }
        Err(keys::Failed::Refused(text)) => {
            say(io::stderr(), format_args!("oncegate: {text}\n"));
            Exit::Failure
        }
    }
}

fn with_runtime<E: Error + 'static>(work: impl Future<Output = Result<(), E>>) -> Exit {
    let done = match Runtime::new() {
        Ok(runtime) => runtime.block_on(work).map_err(|error| Chain(&error).to_string()),
        Err(error) => Err(Chain(&error).to_string()),
    };
    match done {
        Ok(()) => Exit::Success,
        Err(text) => {
            say(io::stderr(), format_args!("oncegate: {text}\n"));
            Exit::Failure
        }
    }
}

/// A reader that has gone away, as `head` does, is no failure.
fn say(mut to: impl Write, text: impl Display) {
    drop(write!(to, "{text}").and_then(|()| to.flush()));
}
