//! `comet serve` takes Java's `broker.conf` as it is; a flag wins over `--set`, that over the file, that over the default.
//! What it does not know or does not have yet it says; what cannot work it refuses by name. It stops cleanly on SIGTERM.
//! Method: the real process; `--print-config` shows what it would run with, requests to its ports what it runs with.

mod support;

use std::net::SocketAddr;
use std::path::Path;

use support::*;

const BROKER_CONF: &str = "\
# As in the distribution.
brokerClusterName = TestCluster
brokerName = broker-x
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
listenPort = 20911
maxMessageSize=65536
";

/// The printed value of a key.
fn value<'a>(printed: &'a Ended, key: &str) -> &'a str {
    let line = printed.lines().into_iter().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {}", printed.out))
}

fn conf(dir: &Path, text: &str) -> String {
    let path = dir.join("broker.conf");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn print(data: &Path, args: &[&str]) -> Ended {
    let ended = run(serve(data, &["--print-config"]).args(args), "");
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
    ended
}

fn refused(data: &Path, args: &[&str], words: &[&str]) {
    let ended = run(&mut serve(data, args), "");
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{ended:?}");
    let last = ended.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("comet: "), "{ended:?}");
    words.iter().for_each(|word| assert!(last.contains(word), "no '{word}' in {last}"));
}

#[test]
fn flag_over_set_over_file_over_default() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let file = conf(dir.path(), BROKER_CONF);
    let printed = print(&data, &[]);
    assert_eq!(value(&printed, "listenPort"), "10911");
    assert_eq!(value(&printed, "brokerClusterName"), "DefaultCluster");
    assert_eq!(value(&printed, "brokerIP1"), "127.0.0.1");
    assert_eq!(value(&printed, "storePathRootDir"), data.to_str().unwrap());
    assert_eq!(value(&printed, "storePathCommitLog"), data.join("commitlog").to_str().unwrap());

    let printed = print(&data, &["-c", &file]);
    assert_eq!(value(&printed, "listenPort"), "20911");
    assert_eq!(value(&printed, "brokerName"), "broker-x");
    assert_eq!(value(&printed, "brokerClusterName"), "TestCluster");
    assert_eq!(value(&printed, "fileReservedTime"), "48");

    let set = ["-c", &file, "--set", "listenPort=20912", "--set", "brokerName=broker-y"];
    let printed = print(&data, &set);
    assert_eq!((value(&printed, "listenPort"), value(&printed, "brokerName")), ("20912", "broker-y"));
    let printed = print(&data, &[&set[..], &["--broker-port", "20913"]].concat());
    assert_eq!((value(&printed, "listenPort"), value(&printed, "brokerName")), ("20913", "broker-y"));
    assert!(!data.exists(), "printing the configuration created the store");
    // What is printed loads as it is.
    let again = conf(dir.path(), &printed.out);
    assert_eq!(print(&data, &["-c", &again]).out, printed.out);
}

#[test]
fn a_broker_runs_with_javas_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = conf(dir.path(), BROKER_CONF);
    let args = ["-c", &file, "--namesrv-port", "0", "--broker-port", "0"];
    let comet = Comet::start_with(&dir.path().join("data"), &args);
    let mut peer = Peer::connect(comet.broker);
    let config = String::from_utf8(peer.ok(&Ask::new(26)).body).unwrap();
    assert!(config.lines().any(|l| l == "brokerName=broker-x"), "{config}");
    // A limit of the file is in force.
    assert_eq!(peer.ask(&send("orders", 0, vec![b'x'; 65_537])).code, 13);
    peer.ok(&send("orders", 0, vec![b'x'; 65_536]));
    let route = Peer::connect(comet.namesrv).ok(&Ask::new(105).field("topic", "TBW102"));
    let route = String::from_utf8(route.body).unwrap();
    assert!(route.contains("broker-x") && route.contains("TestCluster"), "{route}");
    assert!(route.contains(&comet.broker.to_string()), "{route}");
}

#[test]
fn what_it_does_not_know_or_have_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let file = conf(dir.path(), "brokerName=a\nfavouriteColour=red\nkvConfigPath=/tmp/x.json\n");
    let printed = print(&data, &["-c", &file]);
    let warnings = |word: &str| printed.err.lines().filter(|l| l.contains("WARN") && l.contains(word)).count();
    assert_eq!(warnings("favouriteColour"), 1, "{}", printed.err);
    // A key of the name server is known to this process.
    assert_eq!(warnings("kvConfigPath"), 0, "{}", printed.err);
    assert_eq!(value(&printed, "brokerName"), "a");

    let printed = print(&data, &["--grpc-port", "8081", "--http-port", "8088"]);
    for flag in ["--grpc-port", "--http-port"] {
        let lines = printed.err.lines().filter(|l| l.contains("WARN") && l.contains(flag));
        assert_eq!(lines.count(), 1, "{}", printed.err);
    }
    // One that is in the tables of both roles is told once.
    let printed = print(&data, &["--set", "serverWorkerThreads=16"]);
    let lines = printed.err.lines().filter(|l| l.contains("WARN") && l.contains("serverWorkerThreads"));
    assert_eq!(lines.count(), 1, "{}", printed.err);
    assert!(!print(&data, &[]).err.contains("WARN"));
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let set = |pair: &'static str| ["--set", pair];
    refused(&data, &set("listenPort=65536"), &["listenPort", "65536", "between 0 and 65535"]);
    refused(&data, &set("listenPort=many"), &["listenPort", "many", "a whole number"]);
    refused(&data, &set("flushDiskType=SOMETIMES"), &["flushDiskType", "SOMETIMES", "SYNC_FLUSH, ASYNC_FLUSH"]);
    refused(&data, &set("favouriteColour=red"), &["favouriteColour", "unknown key"]);
    refused(&data, &set("listenPort"), &["--set listenPort", "KEY=VALUE"]);
    let file = conf(dir.path(), "listenPort=-1\nautoCreateTopicEnable=perhaps\n");
    refused(&data, &["-c", &file], &[&file, "listenPort", "-1", "autoCreateTopicEnable", "perhaps", "true or false"]);
    let missing = dir.path().join("none.conf");
    refused(&data, &["-c", missing.to_str().unwrap()], &[missing.to_str().unwrap(), "No such file"]);
    let ports = ["--namesrv-port", "0", "--broker-port", "0"];
    let rocks = [&ports[..], &["--set", "storeType=defaultRocksDB"]].concat();
    refused(&data, &rocks, &["storeType=defaultRocksDB", "only file stores"]);
}

#[test]
fn one_process_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let comet = Comet::start(&data);
    let args = ["--namesrv-port", "0", "--broker-port", "0"];
    refused(&data, &args, &[data.join("lock").to_str().unwrap(), "in use by another process"]);
    // The first one is not disturbed.
    Peer::connect(comet.broker).ok(&send("orders", 0, "x"));
    assert!(comet.terminate().success());
    drop(Comet::start(&data));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let args = ["--namesrv-port", "0", "--broker-port", &port];
    refused(&dir.path().join("data"), &args, &[&format!("127.0.0.1:{port}"), "cannot listen"]);
    let args = ["--namesrv-port", &port, "--broker-port", "0"];
    refused(&dir.path().join("data"), &args, &[&format!("127.0.0.1:{port}"), "cannot listen"]);
}

#[test]
fn sigterm_stops_it_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let comet = Comet::start(&data);
    assert!(data.join("abort").exists());
    let mut peer = Peer::connect(comet.broker);
    peer.ok(&send("orders", 0, "x"));
    // One that waits is answered or closed, not waited for.
    peer.post(&parked("orders", 0, 1, "*", LONG));
    let namesrv = comet.namesrv;
    let status = comet.terminate();
    assert!(status.success(), "{status}");
    assert!(!data.join("abort").exists(), "the mark of an unclean stop is still there");
    assert!(std::net::TcpStream::connect(namesrv).is_err());
    let comet = Comet::start(&data);
    assert_eq!(Peer::connect(comet.broker).ok(&pull("orders", 0, 0)).messages(), [(0, b"x".to_vec())]);
    assert!(!comet.log().contains("ERROR"), "{}", comet.log());
}

#[test]
fn sigterm_may_come_as_soon_as_it_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for _ in 0..20 {
        let status = Comet::start(&data).terminate();
        assert!(status.success(), "{status}");
        assert!(!data.join("abort").exists());
    }
}

#[test]
fn a_fixed_port_has_a_fast_port_two_below_and_a_picked_one_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let picked = Comet::start(&dir.path().join("picked"));
    let fast = SocketAddr::new(picked.broker.ip(), picked.broker.port() - 2);
    assert!(std::net::TcpStream::connect(fast).is_err(), "there is a fast port at {fast}");

    let port = free_port();
    let args = ["--namesrv-port", "0", "--broker-port", &port.to_string()];
    let fixed = Comet::start_with(&dir.path().join("fixed"), &args);
    assert_eq!(fixed.broker.port(), port);
    let mut fast = Peer::connect(SocketAddr::new(fixed.broker.ip(), port - 2));
    fast.ok(&send("orders", 0, "x"));
    let got = fast.ask(&pull("orders", 0, 0));
    assert_eq!(got.code, 3);
    assert!(got.remark.contains("main port"), "{}", got.remark);
    fast.ok(&send("orders", 0, "y"));
    assert_eq!(Peer::connect(fixed.broker).ok(&pull("orders", 0, 0)).messages().len(), 2);
}
