//! The address that clients are told to connect to.
//!
//! Found from the machine's own route: the source address that it would use for others. Loopback only when there is nothing
//! else or when it was asked for. An address that only this container knows is never handed out without a warning.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Picks the advertised address for a broker that listens on `host`.
pub fn advertised(host: IpAddr) -> IpAddr {
    if !host.is_unspecified() {
        return host;
    }
    let found = outgoing().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    if found.is_loopback() {
        tracing::warn!(
            "no address but loopback was found: only clients on this machine can connect (--advertise ADDR)"
        );
    } else if in_container() {
        tracing::warn!(address = %found, "this looks like a container: clients outside of it may not reach this address (--advertise ADDR)");
    }
    found
}

/// The source address of packets to the outside. Nothing is sent: connecting a datagram socket only picks the route.
fn outgoing() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // A documentation address (RFC 5737): any that is not ours will do.
    socket.connect(SocketAddr::from(([192, 0, 2, 1], 9))).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified()).then_some(ip)
}

fn in_container() -> bool {
    std::path::Path::new("/.dockerenv").exists() || std::path::Path::new("/run/.containerenv").exists()
}
