//! Message ids. Offset id: where a message lies (host, port, commit-log offset). Unique id: made by the client.
//! Both are upper-case hex, 32 characters with an IPv4 address, 56 with IPv6 (unique id: 32 or 56).
//! Java: `MessageDecoder.createMessageId`, `MessageClientIDSetter`.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Offset id: 4 or 16 bytes address, 4 port, 8 commit-log offset.
pub fn offset_id(host: SocketAddr, log_offset: i64) -> String {
    let mut out = String::with_capacity(56);
    match host.ip() {
        IpAddr::V4(ip) => push_hex(&mut out, &ip.octets()),
        IpAddr::V6(ip) => push_hex(&mut out, &ip.octets()),
    }
    push_hex(&mut out, &u32::from(host.port()).to_be_bytes());
    push_hex(&mut out, &log_offset.to_be_bytes());
    out
}

/// The reverse of [`offset_id`].
pub fn parse_offset_id(id: &str) -> Option<(SocketAddr, i64)> {
    let bytes = parse_hex(id)?;
    let (ip, rest): (IpAddr, &[u8]) = match bytes.len() {
        16 => (IpAddr::from(<[u8; 4]>::try_from(&bytes[..4]).ok()?), &bytes[4..]),
        28 => (IpAddr::from(<[u8; 16]>::try_from(&bytes[..16]).ok()?), &bytes[16..]),
        _ => return None,
    };
    let (port, offset) = rest.split_first_chunk::<4>()?;
    let port = u16::try_from(u32::from_be_bytes(*port)).ok()?;
    Some((SocketAddr::new(ip, port), i64::from_be_bytes(offset.try_into().ok()?)))
}

/// Makes unique ids: 4 or 16 bytes address, 2 process id, 4 instance, 4 milliseconds since the start of the month, 2 counter.
#[derive(Debug)]
pub struct UniqueIds {
    prefix: String,
    counter: AtomicU32,
}

impl UniqueIds {
    /// `instance` takes the place of Java's class-loader hash: any number that differs between the makers of a process.
    pub fn new(ip: IpAddr, process_id: u32, instance: u32) -> Self {
        let mut prefix = String::with_capacity(44);
        match ip {
            IpAddr::V4(ip) => push_hex(&mut prefix, &ip.octets()),
            IpAddr::V6(ip) => push_hex(&mut prefix, &ip.octets()),
        }
        push_hex(&mut prefix, &(process_id as u16).to_be_bytes());
        push_hex(&mut prefix, &instance.to_be_bytes());
        Self { prefix, counter: AtomicU32::new(0) }
    }

    pub fn next(&self, now_ms: i64) -> String {
        let mut id = String::with_capacity(56);
        id.push_str(&self.prefix);
        push_hex(&mut id, &((now_ms - month_start_ms(now_ms)) as u32).to_be_bytes());
        push_hex(&mut id, &(self.counter.fetch_add(1, Ordering::Relaxed) as u16).to_be_bytes());
        id
    }
}

/// When a unique id was made, seen from `now_ms`. Java: `MessageClientIDSetter.getNearlyTimeFromID`.
pub fn unique_id_time_ms(id: &str, now_ms: i64) -> Option<i64> {
    let bytes = parse_hex(id)?;
    let at = match bytes.len() {
        16 => 10,
        28 => 22,
        _ => return None,
    };
    let since = i64::from(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let start = month_start_ms(now_ms);
    // An id from the end of last month, read after the month turned.
    Some(if start + since <= now_ms + 1000 { start + since } else { month_start_ms(start - 1) + since })
}

/// First millisecond (UTC) of the month that `now_ms` lies in.
fn month_start_ms(now_ms: i64) -> i64 {
    const DAY_MS: i64 = 86_400_000;
    // Days since 0000-03-01, in eras of 400 years: a month's first day follows from the day of the year.
    let days = now_ms.div_euclid(DAY_MS) + 719_468;
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    (days - 719_468 - day_of_month) * DAY_MS
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) || text.len() > 56 {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_the_format_page() {
        let host: SocketAddr = "10.0.0.2:10911".parse().unwrap();
        assert_eq!(offset_id(host, 1024), "0A00000200002A9F0000000000000400");
        assert_eq!(parse_offset_id("0A00000200002A9F0000000000000400"), Some((host, 1024)));
        let v6: SocketAddr = "[fd00::1]:10911".parse().unwrap();
        let id = offset_id(v6, 7);
        assert_eq!(id.len(), 56);
        assert_eq!(parse_offset_id(&id), Some((v6, 7)));
        assert_eq!(parse_offset_id("0A0"), None);
        assert_eq!(parse_offset_id("zz00000200002A9F0000000000000400"), None);
    }

    #[test]
    fn months_start_where_the_calendar_says() {
        assert_eq!(month_start_ms(0), 0);
        assert_eq!(month_start_ms(1_709_164_800_000), 1_706_745_600_000); // 2024-02-29 → 2024-02-01
        assert_eq!(month_start_ms(1_796_052_143_547), 1_793_491_200_000); // 2026-11-30 → 2026-11-01
        assert_eq!(month_start_ms(1_767_225_600_000), 1_767_225_600_000); // 2026-01-01
    }

    #[test]
    fn unique_ids_carry_their_time_and_never_repeat() {
        let ids = UniqueIds::new("10.0.0.9".parse().unwrap(), 0x1_2345, 0xCAFE);
        let now = 1_796_052_143_547;
        let (a, b) = (ids.next(now), ids.next(now));
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
        assert_eq!(&a[..20], "0A00000923450000CAFE");
        assert_eq!(unique_id_time_ms(&a, now + 5), Some(now));
        let last_month = ids.next(1_793_491_199_000);
        assert_eq!(unique_id_time_ms(&last_month, 1_793_491_201_000), Some(1_793_491_199_000));
    }
}
