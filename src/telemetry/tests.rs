//! Logs and metrics are outputs, and are held to their documentation.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    sync::mpsc,
    time::Duration,
};

use http::{Method, StatusCode};
use tracing::level_filters::LevelFilter;

use super::{
    log::{Format, Settings},
    *,
};
use crate::domain::{FencingToken, IdempotencyKey, KeyFormat, KeyId, KeyRules, Timestamp};

const DOCS: &str = include_str!("../../docs/metrics.md");

/// Kind and labels, by name.
type Catalogue = BTreeMap<String, (String, BTreeSet<String>)>;

fn documented() -> Catalogue {
    let rows = DOCS.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .filter(|cells| cells.len() > 4)
        .map(|cells| {
            let labels = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (cells[0].trim_end_matches('`').to_owned(), (cells[1].to_owned(), labels))
        })
        .collect()
}

/// What `/metrics` says after everything that can be counted was counted.
fn rendered() -> String {
    let recorder = recorder::recorder();
    let metrics = Metrics::new(recorder.handle(), log::DroppedLines::default());
    ::metrics::with_local_recorder(&recorder, || {
        describe::describe();
        metrics::register();
        let route = RouteMetrics::new("charges");
        route.request_ended(Outcome::Executed, Duration::from_millis(3));
        for phase in [Phase::Begin, Phase::Wait, Phase::Commit] {
            route.ledger_phase(phase, Duration::from_millis(1));
        }
        UpstreamMetrics::new("payments").call_ended(None, Duration::from_secs(1));
        ensemble::watch_notified("/dedup");
        ensemble::session_lost(ensemble::SessionLoss::Lease);
        ensemble::lock_released("charges");
        ensemble::lock_inherited("charges");
        ensemble::locks_of_a_key("charges", 2.0);
        ensemble::ensemble(2, 3);
        metrics::spans_dropped().collector.increment(1);
        certificate_expires("ca", Some(Timestamp::from_millis(1)));
        ensemble::register("/dedup");
        drop(ensemble::LiveLock::new("charges"));
        ensemble::SessionMetrics::new(0).state(ensemble::SessionState::Connected);
        ensemble::OperationMetrics::new()
            .answered(ensemble::Operation::MultiBegin, Duration::from_millis(1));
        record_stored(&Stored { in_progress: 1, completed: 2, unknown: 3, bytes: 4 });
        metrics.render()
    })
}

fn catalogue(text: &str) -> Catalogue {
    let mut catalogue = Catalogue::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            catalogue.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((sample, rest)) = line.split_once('{') {
            let name = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| sample.strip_suffix(suffix))
                .filter(|name| catalogue.contains_key(*name))
                .unwrap_or(sample);
            let labels = rest.split('"').step_by(2).filter_map(|text| text.strip_suffix('='));
            let labels = labels.map(|text| text.trim_start_matches(',').to_owned());
            let known = &mut catalogue.get_mut(name).expect("a type line comes first").1;
            known.extend(labels.filter(|label| label != "le"));
        }
    }
    catalogue
}

#[test]
fn the_documentation_lists_every_metric_with_its_kind_and_labels() {
    assert_eq!(documented(), catalogue(&rendered()));
}

#[test]
fn every_name_is_documented() {
    let source = include_str!("names.rs");
    let names = source.lines().filter_map(|line| line.strip_suffix("\";")?.split_once(" = \""));
    let names: BTreeSet<_> = names.map(|(_, name)| name.to_owned()).collect();

    assert_eq!(names, documented().into_keys().collect());
}

#[test]
fn every_metric_has_a_help_text() {
    let text = rendered();
    for name in catalogue(&text).keys() {
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has none");
    }
}

#[test]
fn every_outcome_is_documented_and_has_a_label_of_its_own() {
    let labels: BTreeSet<_> = Outcome::ALL.iter().map(|outcome| outcome.label()).collect();
    assert_eq!(labels.len(), Outcome::ALL.len());
    for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
        assert_eq!(outcome.index(), index);
        assert!(DOCS.contains(&format!("`{}`", outcome.label())), "{outcome:?}");
    }
}

#[test]
fn a_request_is_counted_once_under_its_route_and_outcome() {
    let text = rendered();
    let requests = "oncegate_requests_total{route=\"charges\"";
    assert!(text.contains(&format!("{requests},outcome=\"executed\"}} 1\n")), "{text}");
    assert!(text.contains(&format!("{requests},outcome=\"replayed\"}} 0\n")), "{text}");
    let bucket = "oncegate_request_duration_seconds_bucket{route=\"charges\",outcome=\"executed\"";
    assert!(text.contains(&format!("{bucket},le=\"0.0025\"}} 0\n")), "{text}");
    assert!(text.contains(&format!("{bucket},le=\"0.005\"}} 1\n")), "{text}");
    assert!(text.contains(&format!("{bucket},le=\"60\"}} 1\n")), "{text}");
}

#[test]
fn what_is_in_flight_is_counted_until_its_guard_is_dropped() {
    let recorder = recorder::recorder();
    ::metrics::with_local_recorder(&recorder, || {
        let route = RouteMetrics::new("charges");
        let first = route.key_in_flight();
        let second = route.clone().key_in_flight();
        let in_flight = |number| format!("oncegate_keys_in_flight{{route=\"charges\"}} {number}\n");
        assert!(recorder.handle().render().contains(&in_flight(2)));

        drop((first, second));

        assert!(recorder.handle().render().contains(&in_flight(0)));
    });
}

#[test]
fn the_class_of_a_status_beyond_the_known_ones_is_5xx() {
    let recorder = recorder::recorder();
    ::metrics::with_local_recorder(&recorder, || {
        let upstream = UpstreamMetrics::new("payments");
        let status = StatusCode::from_u16(799).unwrap();
        upstream.call_ended(Some(status), Duration::ZERO);
        upstream.call_ended(Some(StatusCode::CREATED), Duration::ZERO);
    });
    let text = recorder.handle().render();
    let calls = "oncegate_upstream_duration_seconds_count{upstream=\"payments\",status_class";
    assert!(text.contains(&format!("{calls}=\"5xx\"}} 1\n")), "{text}");
    assert!(text.contains(&format!("{calls}=\"2xx\"}} 1\n")), "{text}");
    assert!(text.contains(&format!("{calls}=\"4xx\"}} 0\n")), "{text}");
}

/// Sends each write to the test.
struct Lines(mpsc::Sender<Vec<u8>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that `act` logs, at this level and more important ones.
fn logged(level: LevelFilter, act: impl FnOnce()) -> Vec<serde_json::Value> {
    let (sender, lines) = mpsc::channel();
    let settings = Settings { format: Format::Json, level };
    let dispatch = log::dispatch(settings, move || Lines(sender.clone()), false);
    tracing::dispatcher::with_default(&dispatch, act);
    drop(dispatch);
    lines.iter().map(|line| serde_json::from_slice(&line).unwrap()).collect()
}

fn access() -> Access<'static> {
    Access {
        method: &Method::POST,
        path: "/v1/charges",
        status: Some(StatusCode::CREATED),
        outcome: Outcome::Executed,
        duration: Duration::from_millis(1500),
        route: Some("charges"),
        upstream: None,
        request_id: "r-1",
    }
}

#[test]
fn the_access_log_has_its_fields_at_the_top_level() {
    let lines = logged(LevelFilter::INFO, || {
        assert!(Access::is_enabled());
        access().log();
    });

    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["target"], "access");
    assert_eq!(line["message"], "request ended");
    assert_eq!(line["method"], "POST");
    assert_eq!(line["path"], "/v1/charges");
    assert_eq!(line["status"], 201);
    assert_eq!(line["outcome"], "executed");
    assert_eq!(line["duration"].to_string(), "1.5");
    assert_eq!(line["route"], "charges");
    assert_eq!(line["request_id"], "r-1");
    assert_eq!(line.get("upstream"), None);
}

#[test]
fn the_access_log_is_silent_above_its_level() {
    let lines = logged(LevelFilter::WARN, || {
        assert!(!Access::is_enabled());
        access().log();
    });
    assert_eq!(lines, Vec::<serde_json::Value>::new());
}

#[test]
fn the_audit_log_says_who_did_what_and_why_at_any_level() {
    for level in [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::INFO, LevelFilter::TRACE] {
        let lines = logged(level, || {
            let key = KeyId::from_bytes([0xab; 32]);
            let audit = Audit {
                action: "resolve",
                key: &key,
                result: "done",
                actor: Some("alice"),
                peer: Some(([127, 0, 0, 1], 5).into()),
                reason: "seen at the bank",
                status: Some(201),
            };
            audit.log();
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(
            (&line["target"], &line["message"]),
            (&"audit".into(), &"operator acted".into())
        );
        assert_eq!((&line["action"], &line["result"]), (&"resolve".into(), &"done".into()));
        assert_eq!(line["key_id"], "ab".repeat(32));
        assert_eq!((&line["actor"], &line["peer"]), (&"alice".into(), &"127.0.0.1:5".into()));
        assert_eq!((&line["reason"], &line["status"]), (&"seen at the bank".into(), &201.into()));
    }
}

fn lock_event(key: LoggedKey<'_>) -> serde_json::Value {
    let lines = logged(LevelFilter::INFO, || {
        let event = LockEvent {
            event: Transition::Acquired,
            key,
            znode_path: None,
            session_id: Some(SessionId(0x0001_000a)),
            route: "charges",
            request_id: "r-1",
            attempt: Some(2),
            fencing_token: Some(FencingToken::new(77)),
            gateway: "g-1",
        };
        event.log();
    });
    let [line] = &lines[..] else { panic!("{lines:?}") };
    line.clone()
}

#[test]
fn a_lock_event_has_the_fields_that_runbooks_search_for() {
    let line = lock_event(LoggedKey::hashed(&KeyId::from_bytes([0xab; 32])));
    assert_eq!(line["event"], "acquired");
    assert_eq!(line["idempotency_key"], "ab".repeat(32));
    assert_eq!(line.get("znode_path"), None);
    assert_eq!(line["session_id"], "0x1000a");
    assert_eq!(line["route"], "charges");
    assert_eq!(line["request_id"], "r-1");
    assert_eq!(line["attempt"], 2);
    assert_eq!(line["fencing_token"], 77);
    assert_eq!(line["gateway"], "g-1");
}

#[test]
fn a_key_is_shown_only_where_keys_are_logged_plainly() {
    let headers = [("idempotency-key".parse().unwrap(), "order-4711".parse().unwrap())];
    let headers = headers.into_iter().collect();
    let rules = KeyRules { max_length: 255, format: KeyFormat::Any };
    let name = "idempotency-key".parse().unwrap();
    let key = IdempotencyKey::read(&headers, &name, rules).unwrap().unwrap();
    let id = KeyId::from_bytes([0xab; 32]);

    let plain = lock_event(KeyNaming::Plain.name(&key, &id));
    assert_eq!(plain["idempotency_key"], "order-4711");

    let hashed = lock_event(KeyNaming::Hashed.name(&key, &id));
    assert_eq!(hashed["idempotency_key"], "ab".repeat(32));
    assert!(!hashed.to_string().contains("order-4711"));
    assert!(!format!("{:?}", KeyNaming::Plain.name(&key, &id)).contains("order-4711"));
}

/// Takes nothing until it is told to.
struct Stuck(mpsc::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An error says that the test is over.
        self.0.recv().map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_writer_blocks_nobody_and_what_it_misses_is_counted() {
    let (release, stuck) = mpsc::channel();
    let (writer, guard) = log::writer(Stuck(stuck), 4);
    let dropped = guard.dropped_lines();
    let settings = Settings { format: Format::Json, level: LevelFilter::INFO };
    let dispatch = log::dispatch(settings, writer, false);

    tracing::dispatcher::with_default(&dispatch, || {
        for _ in 0..100 {
            access().log();
        }
    });

    // Four wait, and at most one is being written.
    assert!((95..=96).contains(&dropped.count()), "{}", dropped.count());
    drop(release);
}
