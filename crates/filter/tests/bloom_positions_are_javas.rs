//! The bits that `BloomFilter.createByFn(20, 32).calcBitPositions` of Apache RocketMQ 5.5.0 gave for these keys.

use cometmq_filter::bloom;

#[test]
fn bloom_positions_are_javas() {
    assert_eq!(bloom::BITS, 112);
    for (key, positions) in [
        ("", [0, 0, 0]),
        ("a", [94, 99, 7]),
        ("G1#T1", [36, 12, 100]),
        ("T1#G1", [21, 69, 16]),
        ("组#主题", [38, 9, 19]),
        ("0123456789abcdef", [11, 47, 60]),
        ("0123456789abcdef0123456789abcdeX", [36, 55, 3]),
        ("group-with-a-long-name#%RETRY%topic", [8, 40, 57]),
    ] {
        assert_eq!(bloom::positions(key), positions, "{key}");
    }
}
