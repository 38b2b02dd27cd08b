//! `comet store repair`: a plan, a question, and then the store's own recovery, made to read the whole log and write everything that follows
//! from it anew. Nothing that is not understood is deleted: it goes to `comet/`. A check comes last.
//!
//! Crash    every step can be done again: files are set aside by renaming, JSON is replaced as a whole, recovery starts over

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use cometmq_base::Clock;
use cometmq_store::disk::{Disk, Real};
use cometmq_store::{Checked, Inspect, Options, Severity, Store};
use cometmq_wire::names;

use super::check::{line, report, run};
use super::config::{self, State};
use super::{Format, Place, copy, human, print, shown};
use crate::log;

#[derive(Args)]
#[command(after_help = "Examples:
  comet store repair /srv/mq --out /srv/mq-repaired    the store stays as it is
  comet store repair /srv/mq --in-place
  comet store repair ~/store -c broker.conf --in-place --yes
What is set aside goes to comet/ in the store. Messages whose bytes are damaged cannot be brought back: they are noted as known.
Exit codes: 0 = the store is sound now, 1 = not all could be repaired, 2 = nothing was done, or it failed.")]
pub(super) struct Repair {
    #[command(flatten)]
    place: Place,
    /// Copy the store to this directory, which is new or empty, and repair the copy.
    #[arg(long, value_name = "NEWDIR", required_unless_present = "in_place", conflicts_with = "in_place")]
    out: Option<PathBuf>,
    /// Repair the store where it is.
    #[arg(long)]
    in_place: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

/// What is to be done before the recovery.
#[derive(Default)]
struct Plan {
    /// Sentences, in the order of what is done.
    says: Vec<String>,
    /// Paths below the root, and how their names in `comet/` begin.
    aside: Vec<(PathBuf, &'static str)>,
    /// Names of JSON files that get the content of their backup.
    restore: Vec<PathBuf>,
    /// Lines of `comet/damaged`.
    damaged: Vec<String>,
}

impl Repair {
    pub(super) fn run(&self) -> anyhow::Result<i32> {
        let mut options = self.options()?;
        let (checked, store) = run(&self.place)?;
        for finding in &checked.findings.list {
            print(&line(finding))?;
        }
        let Some(store) = store else { bail!("this cannot be repaired: see above what to do first") };
        if checked.findings.list.is_empty() {
            print("sound: nothing to repair\n")?;
            return Ok(0);
        }
        let plan = plan(&self.place, &store, &checked, self.out.as_deref())?;
        print(&plan.says.iter().map(|says| format!("- {says}\n")).collect::<String>())?;
        if !self.yes && !asks("Go on? [y/N] ")? {
            bail!("nothing was done");
        }
        if let Some(out) = &self.out {
            copy::tree(&self.place.dir, out)?;
        }
        if let Some((slots, items)) = store.index_geometry()? {
            (options.index_slots, options.index_items) = (Some(slots), Some(items));
        }
        drop(store);
        let root = &options.root.clone();
        prepare(root, &plan)?;
        log::start();
        let store = Store::open(options, Arc::new(Real), Clock::System).with_context(|| shown(root))?;
        store.close().with_context(|| shown(root))?;
        let place = Place { dir: root.clone(), ..self.place.clone() };
        report(&run(&place)?.0, Format::Text)
    }

    /// For the directory that is repaired.
    fn options(&self) -> anyhow::Result<Options> {
        let mut options = self.place.options()?;
        options.rebuild = true;
        // Nothing expires meanwhile.
        options.retention.first_after = Duration::MAX;
        let Some(out) = &self.out else { return Ok(options) };
        let inside = [self.place.dir.join("commitlog")];
        ensure!(
            (options.log_dirs.is_empty() || options.log_dirs == inside) && options.read_only_log_dirs.is_empty(),
            "storePathCommitLog has other directories than {}, which --out does not copy; repair with --in-place",
            shown(&inside[0])
        );
        match fs::read_dir(out) {
            Ok(mut there) => ensure!(there.next().is_none(), "--out {}: it is not empty", shown(out)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| format!("--out {}", shown(out))),
        }
        let within = std::path::absolute(out)?.starts_with(std::path::absolute(&self.place.dir)?);
        ensure!(!within, "--out {}: it is inside of the store", shown(out));
        options.root.clone_from(out);
        options.log_dirs.clear();
        Ok(options)
    }
}

fn plan(place: &Place, store: &Inspect, checked: &Checked, out: Option<&Path>) -> anyhow::Result<Plan> {
    let root = &place.dir;
    if let Some((topic, _)) = checked.queues.keys().find(|(topic, _)| names::is_lmq(topic)) {
        bail!("{topic} is a light queue of Java's: its entries cannot be made again here, so nothing is repaired");
    }
    let mut plan = Plan::default();
    if let Some(out) = out {
        plan.says.push(format!("copy {} to {}; all that follows is done to the copy", shown(root), shown(out)));
    }
    for path in store.strays()? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
        plan.says.push(format!("move {} to comet/", shown(&name)));
        plan.aside.push((name, "stray-"));
    }
    let is_index = |path: &Path| path.starts_with("index");
    if checked.findings.list.iter().any(|f| f.severity == Severity::Error && is_index(&f.file)) {
        let files = store.index_files()?;
        plan.says
            .push(format!("set {} index files aside in comet/ and make the index again from the log", files.len()));
        plan.aside.extend(files.into_iter().map(|path| (path, "index-")));
    }
    for (path, state, backup) in config::files(&place.config_dir())? {
        if state != State::Whole && backup == State::Whole {
            let name = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            plan.says.push(format!("give {0} the content of {0}.bak", shown(&name)));
            if state != State::Missing {
                plan.says.push(format!("keep the broken {} in comet/", shown(&name)));
                plan.aside.push((name.clone(), "broken-"));
            }
            plan.restore.push(name);
        }
    }
    for part in &checked.damaged {
        let (from, to) = (part.start, part.end);
        plan.says.push(format!(
            "note in comet/damaged that the log is damaged from offset {from} to {to}; these bytes stay"
        ));
        plan.damaged.push(store.damage_line(part)?);
    }
    for path in store.odd_queue_files()? {
        plan.says.push(format!("set {} aside in comet/: its length is wrong", shown(&path)));
    }
    let log = human(checked.summary.bytes);
    plan.says.push(format!(
        "read the whole log ({log}) and make the entries of all queues again, as a start after a kill does"
    ));
    plan.says.push(
        "keep bytes behind the end of the log, if there are any, in comet/cut-<offset>, and put zeros there"
            .to_string(),
    );
    plan.says.push("write both checkpoints, remove abort, and check the store".to_string());
    Ok(plan)
}

fn asks(question: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    out.write_all(question.as_bytes())?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Sets files aside and restores others. Nobody else has the store.
fn prepare(root: &Path, plan: &Plan) -> anyhow::Result<()> {
    let own = root.join("comet");
    Real.create_dirs(&own).with_context(|| shown(&own))?;
    let lock = root.join("lock");
    let Some(_held) = Real.lock(&lock).with_context(|| shown(&lock))? else {
        bail!("{} is in use by another process", shown(&lock))
    };
    for (name, prefix) in &plan.aside {
        let path = root.join(name);
        let to = free_name(own.join(format!("{prefix}{}", name.file_name().unwrap_or_default().to_string_lossy())));
        Real.rename(&path, &to).with_context(|| format!("moving {} to {}", shown(&path), shown(&to)))?;
        path.parent().map_or(Ok(()), |dir| Real.sync_dir(dir)).with_context(|| shown(&path))?;
    }
    for name in &plan.restore {
        let path = root.join(name);
        let bytes = fs::read(config::backup(&path)).with_context(|| shown(&path))?;
        Real.replace(&path, &own.join("restored.new"), &bytes).with_context(|| shown(&path))?;
    }
    if !plan.damaged.is_empty() {
        let (path, text) = (own.join("damaged"), plan.damaged.join("\n") + "\n");
        Real.replace(&path, &own.join("damaged.new"), text.as_bytes()).with_context(|| shown(&path))?;
    }
    Real.sync_dir(&own).with_context(|| shown(&own))
}

/// What was set aside before stays.
fn free_name(path: PathBuf) -> PathBuf {
    let numbered = (1u32..).map(|n| path.with_added_extension(n.to_string()));
    std::iter::once(path.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(path)
}
