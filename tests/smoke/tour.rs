//! The tour that the demo prints: each of its lines is run as it stands, and shows what its step
//! claims.

use super::{Ran, bash, demo::Demo};

/// The commands of each step, in order.
fn steps(tour: &str) -> Vec<Vec<&str>> {
    let mut steps = Vec::new();
    for line in tour.lines() {
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            steps.push(Vec::new());
        } else if let Some(step) = steps.last_mut()
            && let Some(command) = line.strip_prefix("   ")
            && (command.starts_with("curl ") || command.starts_with("seq "))
        {
            step.push(command);
        }
    }
    steps
}

impl Ran {
    /// Holds an answer to its status and to what must stand in it.
    fn answers(&self, status: &str, parts: &[&str]) {
        assert!(self.printed.starts_with(&format!("HTTP/1.1 {status} ")), "{}", self.printed);
        for part in parts {
            assert!(self.printed.contains(part), "no {part} in\n{}", self.printed);
        }
    }

    fn is_executed(&self) {
        self.answers("201", &["idempotency-expires: ", "\"id\":"]);
        assert!(!self.printed.contains("idempotent-replayed"), "{}", self.printed);
    }

    fn is_replayed(&self) {
        self.answers("201", &["idempotent-replayed: true\r\n", "idempotency-expires: "]);
    }

    fn prints(&self, wanted: &str) {
        assert_eq!(self.printed, wanted);
    }
}

#[tokio::test]
async fn each_line_of_the_tour_shows_what_its_step_claims() {
    let demo = Demo::start().await;
    let mut ran = Vec::new();
    for step in steps(&demo.tour) {
        let mut answers = Vec::new();
        for command in step {
            answers.push(bash(&["-c", command], &[]).await);
        }
        ran.push(answers);
    }
    let [first, again, other, twenty, gives_up, breaks, busy, operator] = &ran[..] else {
        panic!("the tour has other steps now:\n{}", demo.tour);
    };

    first[0].is_executed();

    again[0].is_replayed();
    again[1].prints("1\n");

    other[0].answers("422", &["\"code\":\"key-reused\""]);

    let answers: Vec<&str> = twenty[0].printed.lines().collect();
    assert_eq!(answers.len(), 20, "{}", twenty[0].printed);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{}", twenty[0].printed);
    twenty[1].prints("2\n");

    // 28: curl's own time was over.
    assert_eq!(gives_up[0].code, Some(28), "{}", gives_up[0].printed);
    gives_up[1].is_replayed();

    breaks[0].answers("502", &["\"code\":\"upstream-interrupted\"", "\"outcome\":\"unknown\""]);
    breaks[1].answers("409", &["\"code\":\"outcome-unknown\""]);
    assert_eq!(breaks[2].printed.matches("\"id\":").count(), 4, "{}", breaks[2].printed);
    assert_eq!(breaks[2].printed.matches("\"amount\":6").count(), 1, "{}", breaks[2].printed);

    busy[0].answers("503", &["retry-after: 1\r\n"]);
    busy[1].is_executed();

    for outcome in ["executed\"} 4", "replayed\"} 1", "joined\"} 20", "outcome_unknown\"} 1"] {
        assert!(operator[0].printed.contains(outcome), "{outcome}:\n{}", operator[0].printed);
    }
    assert_eq!(operator[1].printed.matches("\"state\":\"unknown\"").count(), 1);
}
