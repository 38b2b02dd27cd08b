//! Points in time as mqadmin writes and reads them: in the local time zone. Java: `UtilAll`.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// `2026-11-30 08:00:00`
pub(crate) fn seconds(epoch_ms: i64) -> String {
    in_zone(epoch_ms, &TimeZone::system(), "%Y-%m-%d %H:%M:%S")
}

/// The same at UTC+8, wherever this runs, as clusterRT's lines for a log have it.
pub(crate) fn seconds_in_china(epoch_ms: i64) -> String {
    in_zone(epoch_ms, &TimeZone::fixed(jiff::tz::offset(8)), "%Y-%m-%d %H:%M:%S")
}

/// `2026-11-30 08:00:00,123`
pub(crate) fn millis(epoch_ms: i64) -> String {
    in_zone(epoch_ms, &TimeZone::system(), "%Y-%m-%d %H:%M:%S,%3f")
}

fn in_zone(epoch_ms: i64, zone: &TimeZone, format: &str) -> String {
    match Timestamp::from_millisecond(epoch_ms) {
        Ok(time) => time.to_zoned_datetime(zone.clone()).strftime(format).to_string(),
        // Beyond the year 9999: a broken clock somewhere. The number says more than an error.
        Err(_) => epoch_ms.to_string(),
    }
}

/// `now`, epoch milliseconds, `2026-11-30#08:00:00:000` in the local time zone, or RFC 3339.
pub(crate) fn parse(text: &str) -> anyhow::Result<i64> {
    parse_in(text, TimeZone::system(), Timestamp::now())
}

fn parse_in(text: &str, zone: TimeZone, now: Timestamp) -> anyhow::Result<i64> {
    if text == "now" {
        return Ok(now.as_millisecond());
    }
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let java = || {
        let (rest, ms) = text.rsplit_once(':')?;
        let ms: i64 = ms.parse().ok().filter(|ms| (0..1000).contains(ms))?;
        let time = DateTime::strptime("%Y-%m-%d#%H:%M:%S", rest).ok()?.checked_add(ms.milliseconds()).ok()?;
        Some(time.to_zoned_datetime(zone).ok()?.timestamp().as_millisecond())
    };
    java().ok_or_else(|| {
        anyhow::anyhow!("-s {text}: expected now, epoch milliseconds, yyyy-MM-dd#HH:mm:ss:SSS or 2026-11-30T08:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_are_written_and_read_as_java_does() {
        let zone = TimeZone::fixed(jiff::tz::offset(8));
        let ms = 1_796_054_543_007;
        assert_eq!(in_zone(ms, &zone, "%Y-%m-%d %H:%M:%S,%3f"), "2026-12-01 00:02:23,007");
        let read = |text: &str| parse_in(text, zone.clone(), Timestamp::UNIX_EPOCH);
        assert_eq!(read("2026-12-01#00:02:23:007").unwrap(), ms);
        assert_eq!(read("2026-11-30T16:02:23.007Z").unwrap(), ms);
        assert_eq!((read("now").unwrap(), read("-1").unwrap(), read("17").unwrap()), (0, -1, 17));
        for wrong in ["", "yesterday", "2026-12-01#00:02:23", "2026-13-01#00:02:23:007", "2026-12-01#00:02:23:1007"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
