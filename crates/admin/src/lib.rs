//! `comet admin COMMAND`: mqadmin's commands for topics, groups, offsets, clusters and configuration, with its names, flags and
//! table columns, so that scripts keep working. What is new: exit codes, `--json`, and what a change changed.
//!
//! Output   stdout has mqadmin's text, then for a change one line a target: `created`, `deleted`, `perm 6 -> 4`, `nothing
//!          changed`. With `--json` it has one JSON value instead: rows, or `{"changes":[{"target","before","after",
//!          "changed"}],"failures":[]}` (`before` is missing where the server cannot tell it). stderr has failures, one
//!          sentence each, and on a terminal the progress of long work.
//! Exit     0 done, 1 failed (a part of it is enough) or wrong flags, 2 nothing changed.
//! Order    A change reads the state, sends the request even if nothing would change (it may mend a lost registration), and
//!          reads the state again: what is shown is what the server says.
//!
//! Reading order: `args` (flags and commands) → `session` (servers) → `report`, `table`, `time` → one file a family.
//! Java: `tools.command.*`, `DefaultMQAdminExtImpl`.

#![forbid(unsafe_code)]

mod args;
mod session;
mod report;
mod table;
mod time;
mod topic;
mod topic_show;
mod group;
mod group_show;
mod lists;
mod progress;
mod offset;
mod cluster;
mod cluster_rt;
mod clean;
mod config;

pub use args::{command, run};
