//! Client and broker versions: the `version` number of a remoting header.
//!
//! The number is an ordinal of Java's enum `MQVersion.Version`, in which each released version follows its SNAPSHOT:
//! 16 names of the 3.0.0 series, then (x.y.z_SNAPSHOT, x.y.z) for all z of a minor up to 5.9.9, then HIGHER_VERSION.
//!
//! Java     `MQVersion`

/// From here on a client reads route JSON with quoted broker ids.
pub const V4_9_4: i32 = 401;
/// From here on a broker's registration carries queue mapping infos.
pub const V5_0_0: i32 = 413;
/// Up to here a client does not understand GO_AWAY.
pub const V5_3_1: i32 = 475;
/// What CometMQ reports: the version it is compatible with.
pub const V5_5_0: i32 = 513;

/// Java's ordinal of HIGHER_VERSION, the name for all that is newer than the enum.
const HIGHER_VERSION: i32 = 612;

/// The first 16 ordinals do not follow the rule of pairs.
const V3_0_0: [&str; 16] = [
    "SNAPSHOT",
    "ALPHA1",
    "BETA1",
    "BETA2",
    "BETA3",
    "BETA4",
    "BETA5",
    "BETA6_SNAPSHOT",
    "BETA6",
    "BETA7_SNAPSHOT",
    "BETA7",
    "BETA8_SNAPSHOT",
    "BETA8",
    "BETA9_SNAPSHOT",
    "BETA9",
    "FINAL",
];

/// Minors in order: major, first and last minor, first and last patch.
const MINORS: [(i32, i32, i32, i32, i32); 5] =
    [(3, 0, 0, 1, 15), (3, 1, 2, 0, 9), (3, 3, 9, 1, 9), (4, 0, 9, 0, 9), (5, 0, 9, 0, 9)];

/// `V5_5_0` for 513, as Java's tools print it. Ordinals outside the enum are `HIGHER_VERSION`, negative ones too.
pub fn name(ordinal: i32) -> String {
    if let Some(suffix) = usize::try_from(ordinal).ok().and_then(|at| V3_0_0.get(at)) {
        return format!("V3_0_0_{suffix}");
    }
    if !(0..HIGHER_VERSION).contains(&ordinal) {
        return "HIGHER_VERSION".to_owned();
    }
    let mut left = ordinal - V3_0_0.len() as i32;
    for (major, first_minor, last_minor, first_patch, last_patch) in MINORS {
        let ordinals = 2 * (last_patch - first_patch + 1);
        for minor in first_minor..=last_minor {
            if left < ordinals {
                let snapshot = if left % 2 == 0 { "_SNAPSHOT" } else { "" };
                return format!("V{major}_{minor}_{}{snapshot}", first_patch + left / 2);
            }
            left -= ordinals;
        }
    }
    unreachable!("the table covers every ordinal below HIGHER_VERSION")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by Java's `MQVersion.getVersionDesc`.
    #[test]
    fn names_are_javas() {
        for (ordinal, expected) in [
            (0, "V3_0_0_SNAPSHOT"),
            (15, "V3_0_0_FINAL"),
            (16, "V3_0_1_SNAPSHOT"),
            (37, "V3_0_11"),
            (63, "V3_1_8"),
            (79, "V3_2_6"),
            (85, "V3_2_9"),
            (86, "V3_3_1_SNAPSHOT"),
            (115, "V3_4_6"),
            (121, "V3_4_9"),
            (127, "V3_5_3"),
            (212, "V4_0_0_SNAPSHOT"),
            (213, "V4_0_0"),
            (273, "V4_3_0"),
            (333, "V4_6_0"),
            (395, "V4_9_1"),
            (399, "V4_9_3"),
            (V4_9_4, "V4_9_4"),
            (407, "V4_9_7"),
            (V5_0_0, "V5_0_0"),
            (441, "V5_1_4"),
            (V5_3_1, "V5_3_1"),
            (479, "V5_3_3"),
            (493, "V5_4_0"),
            (V5_5_0, "V5_5_0"),
            (611, "V5_9_9"),
            (612, "HIGHER_VERSION"),
            (9999, "HIGHER_VERSION"),
            (-1, "HIGHER_VERSION"),
        ] {
            assert_eq!(name(ordinal), expected, "ordinal {ordinal}");
        }
    }

    #[test]
    fn every_ordinal_has_its_own_name() {
        let names: std::collections::HashSet<String> = (0..=HIGHER_VERSION).map(name).collect();
        assert_eq!(names.len(), 613);
    }
}
