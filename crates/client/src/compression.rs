//! Bodies over 4 KiB travel compressed: bit 0x1 of the system flag, with the kind in bits 0x700 (0 and 0x300 = zlib).
//! Only zlib, Java's default, is written and read here. Java: `Compressor`, `MessageSysFlag.getCompressionType`.

use std::io::{Read, Write};

use bytes::Bytes;
use cometmq_wire::flags::message::{COMPRESSED, COMPRESSION_LZ4, COMPRESSION_MASK, COMPRESSION_ZLIB, COMPRESSION_ZSTD};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Java's `compressLevel`.
const LEVEL: u32 = 5;
/// A body that unfolds to more than this is not believed.
const BODY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Larger bodies are compressed on a thread that may block.
const INLINE_MAX: usize = 128 * 1024;

/// Why the body of a received message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body is compressed with {kind}, which this client cannot read (it reads zlib)")]
    Unsupported { kind: &'static str },
    #[error("the body does not decompress: {why}")]
    Damaged { why: String },
}

/// The body to send and the bits of the system flag. A body that does not get smaller stays as it is.
pub(crate) async fn compress(body: &Bytes) -> (Bytes, i32) {
    let small = if body.len() <= INLINE_MAX {
        zlib(body)
    } else {
        let body = body.clone();
        tokio::task::spawn_blocking(move || zlib(&body)).await.ok().flatten()
    };
    match small {
        Some(small) if small.len() < body.len() => (small.into(), COMPRESSED | COMPRESSION_ZLIB),
        _ => (body.clone(), 0),
    }
}

fn zlib(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::with_capacity(body.len() / 2), Compression::new(LEVEL));
    out.write_all(body).and_then(|()| out.finish()).ok()
}

/// The body of a record as it was before compression. `sys_flag` is the record's.
pub fn decompress(body: Bytes, sys_flag: i32) -> Result<Bytes, BodyError> {
    if sys_flag & COMPRESSED == 0 {
        return Ok(body);
    }
    match sys_flag & COMPRESSION_MASK {
        0 | COMPRESSION_ZLIB => {}
        COMPRESSION_LZ4 => return Err(BodyError::Unsupported { kind: "lz4" }),
        COMPRESSION_ZSTD => return Err(BodyError::Unsupported { kind: "zstd" }),
        _ => return Err(BodyError::Unsupported { kind: "an unknown algorithm" }),
    }
    let mut out = Vec::with_capacity(body.len() * 3);
    let read = ZlibDecoder::new(body.as_ref()).take(BODY_BYTES_MAX + 1).read_to_end(&mut out);
    match read {
        Ok(n) if n as u64 <= BODY_BYTES_MAX => Ok(out.into()),
        Ok(_) => Err(BodyError::Damaged { why: format!("it is larger than {BODY_BYTES_MAX} bytes") }),
        Err(error) => Err(BodyError::Damaged { why: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_and_back() {
        for len in [5_000, 1_000_000] {
            let body = Bytes::from(vec![7u8; len]);
            let (small, flags) = compress(&body).await;
            assert!(small.len() < len / 10);
            assert_eq!(flags, 0x301);
            assert_eq!(decompress(small.clone(), flags).unwrap(), body);
            // Clients before 4.9.5 set no kind.
            assert_eq!(decompress(small, COMPRESSED).unwrap(), body);
        }
    }

    #[tokio::test]
    async fn what_does_not_get_smaller_stays() {
        let mut state = 1u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let noise: Bytes = (0..5_000).map(|_| noise()).collect::<Vec<u8>>().into();
        assert_eq!(compress(&noise).await, (noise.clone(), 0));
    }

    #[test]
    fn other_kinds_are_named() {
        let error = |flags| decompress(Bytes::from_static(b"x"), flags).unwrap_err().to_string();
        assert!(error(COMPRESSED | COMPRESSION_LZ4).contains("lz4"));
        assert!(error(COMPRESSED | COMPRESSION_ZSTD).contains("zstd"));
        assert!(error(COMPRESSED | COMPRESSION_ZLIB).starts_with("the body does not decompress: "));
        assert!(decompress(Bytes::from_static(b"x"), COMPRESSION_ZSTD).is_ok());
    }
}
