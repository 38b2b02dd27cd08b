//! Ids: the offset id of an address and an offset, and the unique id that a client makes, are Java's, in both directions;
//! a unique id tells the same time as Java reads from it.

mod support;

use std::net::{IpAddr, SocketAddr};

use cometmq_wire::message_id::{UniqueIds, offset_id, parse_offset_id, unique_id_time_ms};
use support::golden;

#[test]
fn offset_ids() {
    let lines: Vec<_> = golden("ids.txt").into_iter().filter(|l| l.facts["kind"] == "offset").collect();
    assert_eq!(lines.len(), 21);
    for line in lines {
        let host = &line.facts["host"];
        let ip: IpAddr = host["ip"].as_str().unwrap().parse().unwrap();
        let host = SocketAddr::new(ip, host["port"].as_u64().unwrap() as u16);
        let offset = line.facts["offset"].as_i64().unwrap();
        assert_eq!(offset_id(host, offset), line.data);
        assert_eq!(parse_offset_id(&line.data), Some((host, offset)));
        assert_eq!(parse_offset_id(&line.data.to_lowercase()), Some((host, offset)));
    }
}

#[test]
fn unique_ids() {
    let lines: Vec<_> = golden("ids.txt").into_iter().filter(|l| l.facts["kind"] == "uniq").collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let number = |name: &str| line.facts[name].as_i64().unwrap();
        let now = number("now_ms");
        assert_eq!(unique_id_time_ms(&line.data, now), Some(number("nearly_time_ms")), "{}", line.data);

        let ip: IpAddr = line.facts["ip"].as_str().unwrap().parse().unwrap();
        let ids = UniqueIds::new(ip, number("pid") as u32, 0x070D_EA4E);
        let made_at = number("nearly_time_ms");
        (0..number("counter")).for_each(|_| drop(ids.next(made_at)));
        assert_eq!(ids.next(made_at), line.data);
    }
}
