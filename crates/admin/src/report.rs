//! What a command has to say: text for people and mqadmin's scripts, JSON for programs, failures, and the exit code.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Context;
use cometmq_client::{Error, RequestCode, ResponseCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::table::Table;

const DONE: i32 = 0;
const FAILED: i32 = 1;
const UNCHANGED: i32 = 2;

/// The result of a command.
pub(crate) struct Report {
    text: String,
    json: Value,
    failures: Vec<String>,
    unchanged: bool,
}

impl Report {
    pub(crate) fn new(text: String, json: impl Serialize) -> anyhow::Result<Self> {
        let json = serde_json::to_value(json).context("the result as JSON")?;
        Ok(Self { text, json, failures: Vec::new(), unchanged: false })
    }

    /// Parts of the work that failed; the rest is shown nevertheless.
    pub(crate) fn failures(mut self, failures: Vec<String>) -> Self {
        self.failures = failures;
        self
    }

    /// Prints all of it. Returns the exit code, and whether somebody reads on.
    pub(crate) fn print(&self, as_json: bool) -> anyhow::Result<(i32, bool)> {
        let text = if as_json { format!("{:#}\n", self.json) } else { self.text.clone() };
        let mut out = std::io::stdout().lock();
        let read_on = match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // The reader has seen enough (`| head`).
            Err(error) if error.kind() == ErrorKind::BrokenPipe => false,
            done => {
                done.context("standard output")?;
                true
            }
        };
        self.failures.iter().for_each(|failure| complain(failure));
        let code = match (self.failures.is_empty(), self.unchanged) {
            (false, _) => FAILED,
            (true, true) => UNCHANGED,
            (true, false) => DONE,
        };
        Ok((code, read_on))
    }
}

/// What a command that changes state did, target by target (a broker, a name server, a queue).
#[derive(Default)]
pub(crate) struct Changes {
    said: String,
    rows: Vec<Change>,
    failures: Vec<String>,
}

#[derive(Serialize)]
struct Change {
    target: String,
    /// `None`: the server could not tell. Null: there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    after: Value,
    changed: bool,
}

impl Changes {
    /// A line of mqadmin's.
    pub(crate) fn say(&mut self, line: impl Display) {
        self.said += &format!("{line}\n");
    }

    pub(crate) fn say_table(&mut self, table: Table) {
        self.said += &table.into_text();
    }

    pub(crate) fn add(&mut self, target: impl Into<String>, before: Option<Value>, after: Value) {
        let changed = before.as_ref() != Some(&after);
        self.rows.push(Change { target: target.into(), before, after, changed });
    }

    pub(crate) fn fail(&mut self, error: impl Into<anyhow::Error>) {
        self.failures.push(sentence(&error.into()));
    }

    pub(crate) fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.failures.is_empty()
    }

    /// Takes over what was changed elsewhere, without mqadmin's lines: it does that part silently.
    pub(crate) fn merge(&mut self, what: &str, part: Changes) {
        let named = part.rows.into_iter().map(|row| Change { target: format!("{} {what}", row.target), ..row });
        self.rows.extend(named);
        self.failures.extend(part.failures);
    }

    pub(crate) fn report(self) -> anyhow::Result<Report> {
        let notes: String = self.rows.iter().map(Change::line).collect();
        let unchanged = self.rows.iter().all(|row| !row.changed);
        let json = json!({"changes": self.rows, "failures": self.failures});
        let mut report = Report::new(self.said + &notes, json)?.failures(self.failures);
        report.unchanged = unchanged;
        Ok(report)
    }
}

impl Change {
    fn line(&self) -> String {
        let what = match (&self.before, &self.after) {
            _ if !self.changed => "nothing changed".to_string(),
            (None, Value::Null) => "deleted, if it was there".to_string(),
            (None, after) => format!("now {} (the server cannot tell what it was)", shown(after)),
            (Some(Value::Null), Value::Object(_)) => "created".to_string(),
            (Some(Value::Object(_)), Value::Null) => "deleted".to_string(),
            (Some(Value::Object(before)), Value::Object(after)) => {
                let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                let old_new = |name: &&String| (before.get(*name), after.get(*name));
                let differs = names.iter().filter(|name| {
                    let (old, new) = old_new(name);
                    old != new
                });
                let fields = differs.map(|name| {
                    let (old, new) = old_new(name);
                    format!("{name} {} -> {}", shown(old.unwrap_or(&Value::Null)), shown(new.unwrap_or(&Value::Null)))
                });
                fields.collect::<Vec<_>>().join(", ")
            }
            (Some(before), after) => format!("{} -> {}", shown(before), shown(after)),
        };
        format!("{}: {what}\n", self.target)
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_string(),
        Value::String(text) if text.is_empty() => "\"\"".to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One state before or after a change: `None` where the server cannot tell, null where there is nothing.
pub(crate) fn state<T: Serialize>(found: Result<Option<T>, Error>) -> anyhow::Result<Option<Value>> {
    match found {
        Ok(found) => Ok(Some(serde_json::to_value(found)?)),
        Err(error) if error.code() == Some(ResponseCode::REQUEST_CODE_NOT_SUPPORTED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An error as one sentence with address, request, code and remark.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Error>() {
        Some(Error::Answer { addr, request, code, remark, .. })
            if *code == ResponseCode::REQUEST_CODE_NOT_SUPPORTED =>
        {
            format!(
                "{addr} does not support {request}, which this command needs: it answered {code}: {}",
                remark.trim()
            )
        }
        Some(Error::NoRoute { topic, asked }) => {
            let request = RequestCode::GET_ROUTEINFO_BY_TOPIC;
            format!(
                "{asked} answered {request} for topic {topic} with {}: no broker has it",
                ResponseCode::TOPIC_NOT_EXIST
            )
        }
        // Its text has that of its sources.
        Some(error) => error.to_string(),
        None => format!("{error:#}"),
    }
}

pub(crate) fn complain(sentence: &str) {
    eprintln!("comet admin: {sentence}");
}

/// `what 3/40` on standard error while long work goes on; only on a terminal.
pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    shown: bool,
}

impl Progress {
    pub(crate) fn start(what: &'static str, total: usize) -> Self {
        Self { what, total, done: 0, shown: total > 1 && std::io::stderr().is_terminal() }
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        if self.shown {
            eprint!("\r{} {}/{}", self.what, self.done, self.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r{:width$}\r", "", width = self.what.len() + 24);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(before: Option<Value>, after: Value) -> String {
        let mut changes = Changes::default();
        changes.add("b:1", before, after);
        changes.report().unwrap().text
    }

    #[test]
    fn a_change_is_one_line() {
        assert_eq!(line(Some(Value::Null), json!({"perm": 6})), "b:1: created\n");
        assert_eq!(line(Some(json!({"perm": 6})), Value::Null), "b:1: deleted\n");
        assert_eq!(line(Some(json!({"perm": 6})), json!({"perm": 6})), "b:1: nothing changed\n");
        let (before, after) = (json!({"perm": 6, "order": false, "x": 1}), json!({"perm": 4, "order": false, "y": ""}));
        assert_eq!(line(Some(before), after), "b:1: perm 6 -> 4, x 1 -> none, y none -> \"\"\n");
        assert_eq!(line(Some(json!(3)), json!(7)), "b:1: 3 -> 7\n");
        assert_eq!(line(None, json!("v")), "b:1: now v (the server cannot tell what it was)\n");
    }

    #[test]
    fn one_failure_or_one_change_decides_the_exit_code() {
        let code = |change: bool, failure: bool| {
            let mut changes = Changes::default();
            changes.add("a", Some(json!(1)), json!(1));
            if change {
                changes.add("b", Some(json!(1)), json!(2));
            }
            if failure {
                changes.fail(Error::ShutDown);
            }
            let report = changes.report().unwrap();
            Report { text: String::new(), ..report }.print(false).unwrap().0
        };
        assert_eq!([code(false, false), code(true, false), code(true, true)], [UNCHANGED, DONE, FAILED]);
    }
}
