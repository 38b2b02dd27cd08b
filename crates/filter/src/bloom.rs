//! Bloom filter of SQL subscriptions: which bits a subscription owns in the bitmap of a queue-extension unit and in
//! `consumerFilter.json` (`bloomFilterData`). Only the broker's defaults are built: 20 % error rate for 32
//! subscriptions, which Java computes to three hashes in 112 bits.
//! Java: `filter.util.BloomFilter`, Guava's `murmur3_128`.

/// Bits of the bitmap (`bitNum`).
pub const BITS: u32 = 112;

/// The bits of a subscription (`bitPos`), by its key `group#topic`.
pub fn positions(group_and_topic: &str) -> [u32; 3] {
    let hash = murmur3_low(group_and_topic.as_bytes());
    let (low, high) = (hash as u32, (hash >> 32) as u32);
    [1, 2, 3].map(|i| {
        let combined = low.wrapping_add(high.wrapping_mul(i)).cast_signed();
        (if combined < 0 { !combined } else { combined }).cast_unsigned() % BITS
    })
}

/// The first 64 bits of MurmurHash3_x64_128, seed 0.
fn murmur3_low(bytes: &[u8]) -> u64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let [k1, k2] = words(block);
        h1 = (h1 ^ mix_first(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_second(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let [k1, k2] = words(&last);
    h1 ^= mix_first(k1) ^ bytes.len() as u64;
    h2 ^= mix_second(k2) ^ bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finish(h1).wrapping_add(finish(h2))
}

fn words(block: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*block);
    [both as u64, (both >> 64) as u64]
}

fn mix_first(k: u64) -> u64 {
    k.wrapping_mul(0x87c3_7b91_1142_53d5).rotate_left(31).wrapping_mul(0x4cf5_ad43_2745_937f)
}

fn mix_second(k: u64) -> u64 {
    k.wrapping_mul(0x4cf5_ad43_2745_937f).rotate_left(33).wrapping_mul(0x87c3_7b91_1142_53d5)
}

fn finish(mut h: u64) -> u64 {
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}
