//! Java's `String.hashCode`: tags in consume queues and keys in index files are stored by it.

/// Hash over UTF-16 units, wrapping at 32 bits. Java: `String.hashCode`.
pub fn hash_code(text: &str) -> i32 {
    extend(0, text)
}

/// The hash of a text whose beginning has the hash `hash` and which goes on with `text`.
pub fn extend(hash: i32, text: &str) -> i32 {
    text.encode_utf16().fold(hash, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The tag code of a consume-queue entry: the hash of the tag, sign-extended; 0 without a tag.
/// Java: `MessageExtBrokerInner.tagsString2tagsCode`.
pub fn tags_code(tag: &str) -> i64 {
    i64::from(hash_code(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_java() {
        assert_eq!(hash_code(""), 0);
        assert_eq!(hash_code("TA"), 2669);
        assert_eq!(hash_code("Aa"), hash_code("BB"));
        assert_eq!(hash_code("TagA"), 2598919);
        assert_eq!(extend(hash_code("Tag"), "A"), hash_code("TagA"));
        assert_eq!(tags_code("polygenelubricants"), i64::from(i32::MIN));
    }
}
