//! What a client needs to know to start, with Java's defaults, and the check of it.
//! Java: `ClientConfig`.

use std::net::IpAddr;
use std::time::Duration;

use crate::Error;

/// Options of a [`crate::Client`]. Checked by [`crate::Client::start`].
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Name servers, `host:port`; tried in turn.
    pub namesrv: Vec<String>,
    /// The address in the client id and in message ids; default: the one that the route to the first name server starts from.
    pub ip: Option<IpAddr>,
    /// What follows `ip@` in the client id; default `pid#nanoseconds`, so that two clients of a host do not collide.
    pub instance: Option<String>,
    /// Time limit of one request other than sends and pulls; default 3 s.
    pub request_timeout: Duration,
    /// Default 30 s.
    pub heartbeat_interval: Duration,
    /// How often known routes are fetched again; default 30 s.
    pub route_interval: Duration,
    /// The longest that a shutdown takes; default 10 s.
    pub shutdown_timeout: Duration,
}

impl ClientOptions {
    /// `namesrv`: `host:port`, several separated by `;`.
    pub fn new(namesrv: &str) -> Result<Self, Error> {
        let servers = namesrv.split(';').map(str::trim).filter(|s| !s.is_empty()).map(str::to_string).collect();
        let options = Self {
            namesrv: servers,
            ip: None,
            instance: None,
            request_timeout: Duration::from_secs(3),
            heartbeat_interval: Duration::from_secs(30),
            route_interval: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
        };
        options.check().map(|()| options)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |value: &str, why| Err(Error::Option { name: "namesrv", value: value.to_string(), why });
        if self.namesrv.is_empty() {
            return wrong("", "no name server given; expected host:port, several separated by ';'");
        }
        for addr in &self.namesrv {
            match addr.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) => {}
                _ => return wrong(addr, "not host:port"),
            }
        }
        if let Some(instance) = self.instance.as_deref().filter(|i| i.is_empty() || i.contains(char::is_whitespace)) {
            let why = "empty, or with white space";
            return Err(Error::Option { name: "instance", value: instance.to_string(), why });
        }
        check_duration("request_timeout", self.request_timeout, Duration::from_millis(10))?;
        check_duration("heartbeat_interval", self.heartbeat_interval, Duration::from_millis(100))?;
        check_duration("route_interval", self.route_interval, Duration::from_millis(10))?;
        check_duration("shutdown_timeout", self.shutdown_timeout, Duration::from_millis(10))
    }
}

/// A duration of at least `min` and at most an hour.
pub(crate) fn check_duration(name: &'static str, value: Duration, min: Duration) -> Result<(), Error> {
    if value >= min && value <= Duration::from_secs(3600) {
        return Ok(());
    }
    Err(Error::Option { name, value: format!("{value:?}"), why: "shorter than it can be, or longer than an hour" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_split_and_checked() {
        let options = ClientOptions::new(" a:9876; [::1]:1 ;").unwrap();
        assert_eq!(options.namesrv, ["a:9876", "[::1]:1"]);
        for wrong in ["", ";", "a", "a:", "a:0", ":9876", "a:99999", "a:9876;b"] {
            let error = ClientOptions::new(wrong).unwrap_err().to_string();
            assert!(error.starts_with("option namesrv = "), "{wrong}: {error}");
        }
    }

    #[test]
    fn durations_have_bounds() {
        let mut options = ClientOptions::new("a:1").unwrap();
        options.request_timeout = Duration::ZERO;
        assert!(options.check().unwrap_err().to_string().starts_with("option request_timeout = 0ns"));
    }
}
