//! `comet admin` takes the command lines of mqadmin 5.5.0: the same commands, short flags, long flags and arguments, and
//! what is required there is required here. `mqadmin-5.5.0.tsv` holds what commons-cli's `Options` say in Apache's jar; every
//! command of ours that stands there is parsed with all its flags, with each spelling, and with what is required left out.

use std::collections::{BTreeMap, BTreeSet};

use clap::error::ErrorKind;

const TABLE: &str = include_str!("mqadmin-5.5.0.tsv");
/// Without -b and -c mqadmin prints its help, and does nothing: here one of them is required.
const NEED_BROKERS: [&str; 4] = ["updateTopicPerm", "updateSubGroup", "deleteSubGroup", "updateBrokerConfig"];

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Required,
    /// One of those that are marked so.
    One,
    Optional,
}

struct Flag {
    short: &'static str,
    long: &'static str,
    argument: bool,
    need: Need,
}

/// mqadmin's commands, with their flags.
fn mqadmin() -> BTreeMap<&'static str, Vec<Flag>> {
    let mut commands: BTreeMap<&str, Vec<Flag>> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [command, short, long, argument, need] = cells[..] else { panic!("five cells: {line}") };
        let flags = commands.entry(command).or_default();
        if long == "-" {
            continue;
        }
        let need = match need {
            "required" => Need::Required,
            "one" => Need::One,
            // Both are of one kind in Apache's source, which looks for -b, then for -c.
            _ if NEED_BROKERS.contains(&command) && ["b", "c"].contains(&short) => Need::One,
            _ => Need::Optional,
        };
        flags.push(Flag { short, long, argument: argument == "argument", need });
    }
    commands
}

/// Those that comet has, too.
fn ours() -> BTreeMap<&'static str, Vec<Flag>> {
    let tree = cometmq_admin::command();
    let built: BTreeSet<&str> = tree.get_subcommands().map(clap::Command::get_name).collect();
    mqadmin().into_iter().filter(|(command, _)| built.contains(command)).collect()
}

fn parse(command: &str, words: &[String]) -> Result<(), clap::Error> {
    let line = ["admin".to_string(), command.to_string()].into_iter().chain(words.iter().cloned());
    cometmq_admin::command().try_get_matches_from(line).map(|_| ())
}

/// A flag with an argument that it takes.
fn words(command: &str, flag: &Flag, long: bool) -> Vec<String> {
    let name = if long || flag.short == "-" { format!("--{}", flag.long) } else { format!("-{}", flag.short) };
    if !flag.argument {
        return vec![name];
    }
    let fits = |argument: &&str| {
        let error = parse(command, &[name.clone(), argument.to_string()]).err();
        !error.is_some_and(|e| matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation))
    };
    let argument = ["true", "1", "2", "get"].into_iter().find(fits);
    vec![name.clone(), argument.unwrap_or_else(|| panic!("{command} {name}: no argument fits")).to_string()]
}

/// A line of all flags that are wanted, with the first of those that exclude each other.
fn line(command: &str, flags: &[Flag], long: bool, wanted: impl Fn(&Flag) -> bool) -> Vec<String> {
    let one = flags.iter().position(|flag| flag.need == Need::One && wanted(flag));
    let taken =
        flags.iter().enumerate().filter(|(at, flag)| wanted(flag) && (flag.need != Need::One || one == Some(*at)));
    taken.flat_map(|(_, flag)| words(command, flag, long)).collect()
}

#[test]
fn every_command_is_built_or_refused_by_name() {
    let commands = mqadmin();
    assert_eq!(commands.len(), 96);
    assert!(ours().len() >= 30, "{} are built", ours().len());
    for command in commands.keys().filter(|command| !ours().contains_key(*command)) {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_comet")).args(["admin", command]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains(&format!("{command} is a command of mqadmin that comet does not have yet")), "{said}");
    }
}

#[test]
fn every_flag_is_taken_short_and_long() {
    for (command, flags) in ours() {
        for long in [false, true] {
            for of_two in flags.iter().filter(|flag| flag.need == Need::One).map(|flag| flag.long).chain([""]) {
                let all = line(command, &flags, long, |flag| {
                    flag.need != Need::One || of_two.is_empty() || flag.long == of_two
                });
                parse(command, &all).unwrap_or_else(|error| panic!("{command} {all:?}: {error}"));
            }
        }
    }
}

#[test]
fn what_is_required_there_is_required_here_and_nothing_else() {
    for (command, flags) in ours() {
        let least = line(command, &flags, false, |flag| flag.need != Need::Optional);
        parse(command, &least).unwrap_or_else(|error| panic!("{command} {least:?}: {error}"));
        for left_out in flags.iter().filter(|flag| flag.need != Need::Optional) {
            let kept = |flag: &Flag| match left_out.need {
                Need::One => flag.need != Need::One,
                _ => flag.long != left_out.long,
            };
            let rest = line(command, &flags, false, kept);
            let error = parse(command, &rest).expect_err(&format!("{command} {rest:?}"));
            assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument, "{command} {rest:?}");
            assert!(error.to_string().contains(&format!("--{}", left_out.long)), "{command} {rest:?}: {error}");
        }
    }
}

/// mqadmin takes the first of two brokers' flags, or drops what has no meaning without another flag, and says nothing.
#[test]
fn a_flag_that_would_have_no_effect_is_refused() {
    for (command, flags) in ours() {
        let both: Vec<&Flag> = flags.iter().filter(|flag| flag.need == Need::One).collect();
        if both.is_empty() {
            continue;
        }
        let mut all = line(command, &flags, true, |flag| flag.need == Need::Required);
        all.extend(both.iter().flat_map(|flag| words(command, flag, true)));
        let error = parse(command, &all).expect_err(&format!("{command} {all:?}"));
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{command}: {error}");
        assert!(both.iter().all(|flag| error.to_string().contains(&format!("--{}", flag.long))), "{command}: {error}");
    }
    for (line, wanted) in [
        ("consumerProgress -t orders", "--groupName"),
        ("consumerProgress -s true", "--groupName"),
        ("consumerProgress -g billing -c DefaultCluster", "--topicName"),
        ("resetOffsetByTime -g billing -t orders -s 0 -b 10.0.0.1:10911", "--queue"),
        ("resetOffsetByTime -g billing -t orders -s 0 -q 1", "--broker"),
        ("resetOffsetByTime -g billing -t orders -s 0 -o 1", "--queue"),
        ("updateOrderConf -t orders -m put", "--orderConf"),
    ] {
        let mut all: Vec<String> = line.split(' ').map(str::to_string).collect();
        let command = all.remove(0);
        let error = parse(&command, &all).expect_err(line);
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument, "{line}");
        assert!(error.to_string().contains(wanted), "{line}: {error}");
    }
}
