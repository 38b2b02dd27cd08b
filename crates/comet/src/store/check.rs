//! `comet store check`: a line a finding, and a summary.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use cometmq_store::{Checked, Error, Finding, Inspect, Severity};
use serde_json::{Value, json};

use super::progress::Progress;
use super::{Format, Place, config, human, print, shown};

#[derive(Args)]
#[command(after_help = "Examples:
  comet store check /srv/mq
  comet store check ~/store -c broker.conf     of a Java broker with storePathCommitLog or messageDelayLevel
  comet store check /srv/mq --format json | jq '.findings[] | select(.severity == \"ERROR\")'
A line is: severity, file, byte of the file, what is wrong, what to do. What a kill leaves is a WARN at most.
Exit codes: 0 = no ERROR, 1 = at least one, 2 = it could not be checked.")]
pub(super) struct Check {
    #[command(flatten)]
    place: Place,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<i32> {
        report(&run(&self.place)?.0, self.format)
    }
}

/// Prints a check; its exit code.
pub(super) fn report(checked: &Checked, format: Format) -> anyhow::Result<i32> {
    print(&match format {
        Format::Text => text(checked),
        Format::Json => format!("{}\n", as_json(checked)),
    })?;
    Ok(i32::from(checked.findings.errors > 0))
}

/// Everything that is to be found. The store is kept open, unless its files do not even fit together.
pub(super) fn run(place: &Place) -> anyhow::Result<(Checked, Option<Inspect>)> {
    let store = match super::open(place.options()?) {
        Err(Error::Layout { path, what }) => {
            let mut checked = Checked::default();
            checked.findings.add(Finding {
                severity: Severity::Error,
                file: path.strip_prefix(&place.dir).unwrap_or(&path).to_path_buf(),
                offset: None,
                what,
                advice: "no broker starts with it, and nothing else was looked at",
            });
            return Ok((checked, None));
        }
        other => other?,
    };
    let dir = place.config_dir();
    let topics = config::topics(&dir)?;
    let mut progress = Progress::start();
    let is_topic = |name: &str| exists(topics.as_ref(), name);
    let mut checked = store.check(&is_topic, &mut |done, total| progress.at(done, total))?;
    drop(progress);
    config::check(&dir, &checked.queues, &is_topic, &mut checked.findings)?;
    Ok((checked, Some(store)))
}

/// Without a list of topics all count.
fn exists(topics: Option<&BTreeSet<String>>, name: &str) -> bool {
    topics.is_none_or(|topics| topics.contains(name))
}

fn severity(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Error => "ERROR",
        Severity::Warn => "WARN",
    }
}

fn place_of(file: &Path, offset: Option<u64>) -> String {
    offset.map_or(shown(file), |at| format!("{} at {at}", shown(file)))
}

pub(super) fn line(finding: &Finding) -> String {
    let (severity, place) = (severity(finding), place_of(&finding.file, finding.offset));
    format!("{severity} {place}: {}; {}\n", finding.what, finding.advice)
}

fn text(checked: &Checked) -> String {
    let (found, sum) = (&checked.findings, &checked.summary);
    let mut text: String = found.list.iter().map(line).collect();
    let left_off = found.errors + found.warnings - found.list.len() as u64;
    if left_off > 0 {
        text.push_str(&format!("and {left_off} findings more\n"));
    }
    let verdict = match (found.errors, found.warnings) {
        (0, 0) => "sound".to_string(),
        (0, warnings) => format!("sound, {warnings} WARN"),
        (errors, warnings) => format!("damaged: {errors} ERROR, {warnings} WARN"),
    };
    text.push_str(&format!(
        "{verdict}: {} records in {} of log, {} queues with {} entries compared, {} index keys compared, in {:.3} s\n",
        sum.records,
        human(sum.bytes),
        sum.queues,
        sum.entries,
        sum.keys,
        sum.took.as_secs_f64()
    ));
    text
}

fn as_json(checked: &Checked) -> Value {
    let (found, sum) = (&checked.findings, &checked.summary);
    let finding = |f: &Finding| json!({ "severity": severity(f), "file": shown(&f.file), "offset": f.offset, "what": f.what, "advice": f.advice });
    json!({
        "findings": found.list.iter().map(finding).collect::<Vec<_>>(),
        "errors": found.errors,
        "warnings": found.warnings,
        "records": sum.records,
        "bytes": sum.bytes,
        "queues": sum.queues,
        "entries": sum.entries,
        "indexKeys": sum.keys,
        "millis": sum.took.as_millis() as u64,
    })
}
