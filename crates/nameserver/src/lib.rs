//! nameserver
