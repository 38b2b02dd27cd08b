//! Bits: message system flag, pull system flag, permissions. Java: `MessageSysFlag`, `PullSysFlag`, `PermName`.

/// `sysFlag` of a message record.
pub mod message {
    pub const COMPRESSED: i32 = 0x1;
    pub const MULTI_TAGS: i32 = 0x2;
    pub const TRANSACTION_PREPARED: i32 = 0x4;
    pub const TRANSACTION_COMMIT: i32 = 0x8;
    pub const TRANSACTION_ROLLBACK: i32 = 0xC;
    pub const TRANSACTION_MASK: i32 = 0xC;
    pub const BORN_HOST_V6: i32 = 0x10;
    pub const STORE_HOST_V6: i32 = 0x20;
    pub const NEED_UNWRAP: i32 = 0x40;
    pub const INNER_BATCH: i32 = 0x80;
    pub const COMPRESSION_MASK: i32 = 0x700;
    pub const COMPRESSION_LZ4: i32 = 0x100;
    pub const COMPRESSION_ZSTD: i32 = 0x200;
    pub const COMPRESSION_ZLIB: i32 = 0x300;
}

/// `sysFlag` of a pull request.
pub mod pull {
    pub const COMMIT_OFFSET: i32 = 0x1;
    pub const SUSPEND: i32 = 0x2;
    pub const SUBSCRIPTION: i32 = 0x4;
    pub const CLASS_FILTER: i32 = 0x8;
    pub const LITE_PULL: i32 = 0x10;
}

/// Permission of a topic or a broker.
pub mod perm {
    pub const INHERIT: i32 = 0x1;
    pub const WRITE: i32 = 0x2;
    pub const READ: i32 = 0x4;
    pub const PRIORITY: i32 = 0x8;

    pub fn is_readable(perm: i32) -> bool {
        perm & READ != 0
    }

    pub fn is_writeable(perm: i32) -> bool {
        perm & WRITE != 0
    }

    /// Java: `PermName.isValid`: non-negative and below the next free bit of read, write, inherit.
    pub fn is_valid(perm: i32) -> bool {
        (0..PRIORITY).contains(&perm)
    }

    /// As tools print it, e.g. `RW-`. Java: `PermName.perm2String`.
    pub fn name(perm: i32) -> String {
        let bit = |mask, c| if perm & mask != 0 { c } else { '-' };
        [bit(READ, 'R'), bit(WRITE, 'W'), bit(INHERIT, 'X')].iter().collect()
    }
}
