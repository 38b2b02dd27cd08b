//! An index file: which records carry a key, as chains of items behind a table of slots.
//!
//! Disk     `index/<local time, 17 digits>`, 420,000,040 bytes by default, sparse, big-endian:
//!            header 40: begin ms 8, end ms 8, begin log offset 8, end log offset 8, used slots 4, count 4 (one more than items)
//!            slots, 4 each: the number of the newest item whose key's hash falls into the slot, 0 = none
//!            items, 20 each, number 0 is unused: hash 4, log offset 8, seconds after begin 4, the slot's item before 4
//! Order    items are durable before slots name them, slots before the header counts them
//! Crash    a slot may name an item that the header does not count yet: the chain behind that item is whole ([`settle`])
//! Threads  one writer; readers walk chains without a lock and skip what their header does not count
//! Java     `IndexFile`, `IndexHeader`

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crate::disk::File;

pub(crate) const HEADER_BYTES: u64 = 40;
const SLOT_BYTES: u64 = 4;
const ITEM_BYTES: u64 = 20;
/// Slots are read and written by pages.
const PAGE: u64 = 4096;
const CHUNK: usize = 64 << 10;

/// How many slots and items (the unused one included) a file has. Java: `maxHashSlotNum`, `maxIndexNum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    pub(crate) items: u32,
}

impl Geometry {
    pub(crate) fn file_bytes(self) -> u64 {
        self.item_at(self.items)
    }

    pub(crate) fn slot_at(self, slot: u32) -> u64 {
        HEADER_BYTES + u64::from(slot) * SLOT_BYTES
    }

    pub(crate) fn item_at(self, item: u32) -> u64 {
        self.slot_at(self.slots) + u64::from(item) * ITEM_BYTES
    }
}

/// A key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// 31 bits.
    pub(crate) hash: u32,
    pub(crate) log_at: u64,
    pub(crate) store_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Store times of the first and the last record.
    pub(crate) begin_ms: i64,
    pub(crate) end_ms: i64,
    pub(crate) begin_at: u64,
    pub(crate) end_at: u64,
    pub(crate) used_slots: u32,
    /// The number that the next item gets; 1 in an empty file.
    pub(crate) count: u32,
}

impl Header {
    /// Of a file that follows one which ended so.
    pub(crate) fn after(end_ms: i64, end_at: u64) -> Self {
        Self { begin_ms: end_ms, end_ms, begin_at: end_at, end_at, used_slots: 0, count: 1 }
    }

    /// `Err` says what cannot be true.
    pub(crate) fn read(file: &dyn File, geometry: Geometry) -> io::Result<Result<Self, String>> {
        let mut b = [0; HEADER_BYTES as usize];
        if file.read_at(&mut b, 0, true)? < b.len() {
            return Ok(Err("no header".to_string()));
        }
        let long = |at: usize| b[at..].first_chunk::<8>().map_or(0, |b| i64::from_be_bytes(*b));
        let int = |at: usize| b[at..].first_chunk::<4>().map_or(0, |b| i32::from_be_bytes(*b));
        let (begin_at, end_at) = (long(16), long(24));
        let (used, count) = (int(32), int(36).max(1));
        if begin_at < 0 || end_at < begin_at {
            return Ok(Err(format!("it begins at log offset {begin_at} and ends at {end_at}")));
        }
        if used < 0 || used >= count || count as u32 > geometry.items {
            return Ok(Err(format!("{used} used slots, {count} items of {}", geometry.items)));
        }
        Ok(Ok(Self {
            begin_ms: long(0),
            end_ms: long(8),
            begin_at: begin_at as u64,
            end_at: end_at as u64,
            used_slots: used as u32,
            count: count as u32,
        }))
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        let longs = [self.begin_ms, self.end_ms, self.begin_at as i64, self.end_at as i64];
        for (place, long) in bytes.chunks_mut(8).zip(longs) {
            place.copy_from_slice(&long.to_be_bytes());
        }
        bytes[32..36].copy_from_slice(&self.used_slots.to_be_bytes());
        bytes[36..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count <= 1
    }

    /// Whole seconds behind the begin, as far as 31 bits go.
    fn seconds(&self, store_ms: i64) -> u32 {
        let is_fresh = self.begin_ms <= 0;
        if is_fresh { 0 } else { ((store_ms - self.begin_ms) / 1000).clamp(0, i64::from(i32::MAX)) as u32 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) hash: u32,
    pub(crate) log_at: u64,
    seconds: u32,
    /// The item of its slot before it; 0 = none.
    pub(crate) before: u32,
}

impl Item {
    fn to_bytes(self) -> [u8; ITEM_BYTES as usize] {
        let mut bytes = [0; ITEM_BYTES as usize];
        bytes[..4].copy_from_slice(&self.hash.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.log_at.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[16..].copy_from_slice(&self.before.to_be_bytes());
        bytes
    }

    fn read(file: &dyn File, geometry: Geometry, number: u32) -> io::Result<Self> {
        let mut b = [0; ITEM_BYTES as usize];
        if file.read_at(&mut b, geometry.item_at(number), true)? < b.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self::from_bytes(b))
    }

    fn from_bytes(b: [u8; ITEM_BYTES as usize]) -> Self {
        let int = |at: usize| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let log_at = u64::from(int(4)) << 32 | u64::from(int(8));
        Self { hash: int(0), log_at, seconds: int(12), before: int(16) }
    }
}

/// The newest item of a chain that is below `count`: a slot may name one that is not counted (yet). 0 = none.
pub(crate) fn settle(file: &dyn File, geometry: Geometry, count: u32, mut item: u32) -> io::Result<u32> {
    while item >= count {
        if item >= geometry.items {
            return Ok(0);
        }
        let before = Item::read(file, geometry, item)?.before;
        if before >= item {
            return Ok(0);
        }
        item = before;
    }
    Ok(item)
}

/// Items from number `from` up to `to`, a chunk of them.
pub(crate) fn read_items(file: &dyn File, geometry: Geometry, from: u32, to: u32) -> io::Result<VecDeque<Item>> {
    let mut bytes = vec![0; ITEM_BYTES as usize * to.saturating_sub(from).min(3200) as usize];
    let n = file.read_at(&mut bytes, geometry.item_at(from), true)?;
    Ok(bytes[..n].as_chunks().0.iter().map(|b| Item::from_bytes(*b)).collect())
}

/// Calls `visit` with each slot and the item that it names.
pub(crate) fn each_slot(
    file: &dyn File,
    geometry: Geometry,
    mut visit: impl FnMut(u32, u32) -> io::Result<()>,
) -> io::Result<()> {
    const STEP: u32 = CHUNK as u32 / SLOT_BYTES as u32;
    let mut bytes = Vec::new();
    for from in (0..geometry.slots).step_by(STEP as usize) {
        let to = (geometry.slots - from).min(STEP) + from - 1;
        read_slots(file, geometry, from, to, &mut bytes)?;
        (from..).zip(slots_of(&bytes)).try_for_each(|(slot, item)| visit(slot, item))?;
    }
    Ok(())
}

fn slots_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|b| u32::from_be_bytes(*b))
}

/// Adds `keys`, for which there is room, and makes them durable; returns the new header.
pub(crate) fn append(file: &dyn File, geometry: Geometry, mut header: Header, keys: &[Key]) -> io::Result<Header> {
    let first = header.count;
    let slot = |i: u32| keys[i as usize].hash % geometry.slots;
    // By slot, so that each page of slots is touched once.
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_unstable_by_key(|i| (slot(*i), *i));
    let pages = || order.chunk_by(|a, b| geometry.slot_at(slot(*a)) / PAGE == geometry.slot_at(slot(*b)) / PAGE);

    let mut before = vec![0; keys.len()];
    let mut bytes = Vec::new();
    for page in pages() {
        read_slots(file, geometry, slot(page[0]), slot(page[page.len() - 1]), &mut bytes)?;
        for of_slot in page.chunk_by(|a, b| slot(*a) == slot(*b)) {
            let at = (slot(of_slot[0]) - slot(page[0])) as usize;
            let mut newest = settle(file, geometry, first, slots_of(&bytes).nth(at).unwrap_or(0))?;
            header.used_slots += u32::from(newest == 0);
            for i in of_slot {
                before[*i as usize] = newest;
                newest = first + i;
            }
        }
    }

    bytes.clear();
    let mut at = geometry.item_at(first);
    for (key, before) in keys.iter().zip(before) {
        let item = Item { hash: key.hash, log_at: key.log_at, seconds: header.seconds(key.store_ms), before };
        bytes.extend_from_slice(&item.to_bytes());
        if bytes.len() >= CHUNK {
            file.write_all_at(&bytes, at)?;
            at += bytes.len() as u64;
            bytes.clear();
        }
        if header.is_empty() {
            (header.begin_ms, header.begin_at) = (key.store_ms, key.log_at);
        }
        header.count += 1;
        (header.end_ms, header.end_at) = (key.store_ms, key.log_at);
    }
    file.write_all_at(&bytes, at)?;
    file.sync_data()?;

    for page in pages() {
        let from = slot(page[0]);
        read_slots(file, geometry, from, slot(page[page.len() - 1]), &mut bytes)?;
        for i in page {
            let at = (slot(*i) - from) as usize * SLOT_BYTES as usize;
            bytes[at..at + SLOT_BYTES as usize].copy_from_slice(&(first + i).to_be_bytes());
        }
        file.write_all_at(&bytes, geometry.slot_at(from))?;
    }
    file.sync_data()?;

    file.write_all_at(&header.to_bytes(), 0)?;
    file.sync_data()?;
    Ok(header)
}

fn read_slots(file: &dyn File, geometry: Geometry, from: u32, to: u32, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    bytes.resize((to - from + 1) as usize * SLOT_BYTES as usize, 0);
    let n = file.read_at(bytes, geometry.slot_at(from), true)?;
    if n == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// After a crash: no slot names an item that the header does not count, which others are about to overwrite.
pub(crate) fn repair(file: &dyn File, geometry: Geometry, header: &Header) -> io::Result<()> {
    let end = geometry.slot_at(geometry.slots);
    let mut bytes = Vec::new();
    let mut at = HEADER_BYTES;
    while let Some(data) = file.next_data(at)?.filter(|data| *data < end) {
        // The start of data is that of a block, or of a byte that is not zero.
        let data = (data - data % SLOT_BYTES).max(HEADER_BYTES);
        let from = ((data - HEADER_BYTES) / SLOT_BYTES) as u32;
        let to = (from + (CHUNK as u32 / SLOT_BYTES as u32)).min(geometry.slots) - 1;
        read_slots(file, geometry, from, to, &mut bytes)?;
        let mut changed = false;
        for place in bytes.as_chunks_mut::<4>().0 {
            let named = u32::from_be_bytes(*place);
            if named >= header.count {
                *place = settle(file, geometry, header.count, named)?.to_be_bytes();
                changed = true;
            }
        }
        if changed {
            file.write_all_at(&bytes, geometry.slot_at(from))?;
        }
        at = geometry.slot_at(to + 1);
    }
    file.sync_data()
}

/// Calls `visit` with log offset and store time (to the second, rounded down) of each item with this hash, newest first, until it says `false`
/// or the items are older than `begin_ms`. A chain may be as long as the file: gives up at `until`.
pub(crate) fn find(
    file: &dyn File,
    geometry: Geometry,
    header: &Header,
    hash: u32,
    begin_ms: i64,
    until: Instant,
    visit: &mut dyn FnMut(u64, i64) -> io::Result<bool>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let slot = hash % geometry.slots;
    read_slots(file, geometry, slot, slot, &mut bytes)?;
    let newest = slots_of(&bytes).next().unwrap_or(0);
    let mut number = settle(file, geometry, header.count, newest)?;
    while number > 0 {
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "too many items; narrow the range of time"));
        }
        let item = Item::read(file, geometry, number)?;
        // The first item's seconds count from the end of the file before.
        let seconds = if number == 1 { 0 } else { item.seconds };
        let ms = header.begin_ms.saturating_add(i64::from(seconds) * 1000);
        let is_older = ms.saturating_add(999) < begin_ms;
        if is_older || (item.hash == hash && !visit(item.log_at, ms)?) || item.before >= number {
            break;
        }
        number = item.before;
    }
    Ok(())
}

/// How many items at the end are of the last record.
pub(crate) fn of_last_record(file: &dyn File, geometry: Geometry, header: &Header) -> io::Result<u32> {
    let mut number = header.count;
    while number > 1 && Item::read(file, geometry, number - 1)?.log_at == header.end_at {
        number -= 1;
    }
    Ok(header.count - number)
}

/// What the geometry of a file of odd length must be, told from its first item: where it stands says how many slots there
/// are. `None` when the file does not say. Files of the default length have the default geometry.
pub(crate) fn geometry_of(file: &dyn File, file_bytes: u64) -> io::Result<Option<Geometry>> {
    let read = |at: u64, n: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        let got = file.read_at(&mut bytes, at, true)?;
        bytes.truncate(got);
        Ok(bytes)
    };
    let header = read(0, HEADER_BYTES as usize)?;
    let begin_at = header.get(16..24).unwrap_or_default();
    let mut at = HEADER_BYTES;
    // Number 1 is the first record's; its log offset may be zero, so each place is tried.
    while let Some(data) = file.next_data(at)?.filter(|data| *data < file_bytes) {
        let from = (data - data % SLOT_BYTES).max(HEADER_BYTES);
        let bytes = read(from, CHUNK)?;
        for (i, item) in bytes.windows(ITEM_BYTES as usize).enumerate().step_by(SLOT_BYTES as usize) {
            let slots_bytes = (from + i as u64).saturating_sub(HEADER_BYTES + ITEM_BYTES);
            let items_bytes = file_bytes - HEADER_BYTES - slots_bytes.min(file_bytes - HEADER_BYTES);
            let is_first = item[..4] != [0; 4] && &item[4..12] == begin_at && item[16..] == [0; 4];
            if slots_bytes == 0 || !items_bytes.is_multiple_of(ITEM_BYTES) || !is_first {
                continue;
            }
            let geometry =
                Geometry { slots: (slots_bytes / SLOT_BYTES) as u32, items: (items_bytes / ITEM_BYTES) as u32 };
            if is_geometry(file, geometry)? {
                return Ok(Some(geometry));
            }
        }
        at = from + bytes.len().max(1) as u64 - if bytes.len() == CHUNK { ITEM_BYTES } else { 0 };
    }
    Ok(None)
}

/// Whether the chains of the first items are in their slots.
fn is_geometry(file: &dyn File, geometry: Geometry) -> io::Result<bool> {
    let Ok(header) = Header::read(file, geometry)? else { return Ok(false) };
    for number in 1..header.count.min(16) {
        let item = Item::read(file, geometry, number)?;
        let mut found = false;
        let until = Instant::now() + Duration::from_secs(1);
        find(file, geometry, &header, item.hash, i64::MIN, until, &mut |log_at, _| {
            found = log_at == item.log_at;
            Ok(!found)
        })?;
        if !found {
            return Ok(false);
        }
    }
    Ok(header.count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, Faulty, Open};
    use proptest::prelude::*;
    use std::path::Path;
    use std::sync::Arc;

    fn file(disk: &Faulty, geometry: Geometry) -> Arc<dyn File> {
        disk.create_dirs(Path::new("/i")).unwrap();
        let file = disk.open(Path::new("/i/f"), Open::Create).unwrap();
        file.set_len(geometry.file_bytes()).unwrap();
        file
    }

    fn bytes(file: &dyn File) -> Vec<u8> {
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(&mut bytes, 0, true).unwrap();
        bytes
    }

    /// One key after the other, as Java's `IndexFile.putKey` does it.
    fn put(bytes: &mut [u8], geometry: Geometry, key: Key) {
        let int = |bytes: &[u8], at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().unwrap());
        let set = |bytes: &mut [u8], at: usize, v: u32| bytes[at..at + 4].copy_from_slice(&v.to_be_bytes());
        let set_long = |bytes: &mut [u8], at: usize, v: i64| bytes[at..at + 8].copy_from_slice(&v.to_be_bytes());
        let count = int(bytes, 36).max(1);
        let slot_at = 40 + (key.hash % geometry.slots) as usize * 4;
        let before = int(bytes, slot_at);
        let begin_ms = i64::from_be_bytes(*bytes.first_chunk().unwrap());
        let seconds = if begin_ms <= 0 { 0 } else { ((key.store_ms - begin_ms) / 1000).max(0) };
        let at = 40 + geometry.slots as usize * 4 + count as usize * 20;
        set(bytes, at, key.hash);
        set_long(bytes, at + 4, key.log_at as i64);
        set(bytes, at + 12, seconds as u32);
        set(bytes, at + 16, before);
        set(bytes, slot_at, count);
        if count == 1 {
            set_long(bytes, 0, key.store_ms);
            set_long(bytes, 16, key.log_at as i64);
        }
        set_long(bytes, 8, key.store_ms);
        set_long(bytes, 24, key.log_at as i64);
        let used = int(bytes, 32) + u32::from(before == 0);
        set(bytes, 32, used);
        set(bytes, 36, count + 1);
    }

    fn key((hash, n): (u32, usize)) -> Key {
        Key { hash, log_at: 7 + 100 * n as u64, store_ms: 1_000_000 + 700 * n as i64 }
    }

    fn all(file: &dyn File, geometry: Geometry, header: &Header, hash: u32, begin_ms: i64) -> Vec<(u64, i64)> {
        let mut found = Vec::new();
        let until = Instant::now() + Duration::from_secs(20);
        let mut each = |log_at, ms| {
            found.push((log_at, ms));
            Ok(true)
        };
        find(file, geometry, header, hash, begin_ms, until, &mut each).unwrap();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Slots span pages; hashes collide in slots and as such. The power goes while the last batch is written; what follows is a
        /// batch of other keys, or the same.
        #[test]
        fn many_at_a_time_give_what_one_after_the_other_gives(
            hashes in prop::collection::vec(prop_oneof![0..40u32, 0..3000u32, any::<u32>().prop_map(|h| h >> 1)], 2..300),
            cuts in prop::collection::vec(1..120usize, 1..8), ops in 0..12u64, seed: u64, other: bool, after_ms in 0..2i64,
        ) {
            let geometry = Geometry { slots: 2500, items: 400 };
            let mut disk = Faulty::healthy();
            let mut open = file(&disk, geometry);
            let mut header = Header::after(after_ms * 900_000, after_ms as u64 * 5);
            open.write_all_at(&header.to_bytes(), 0).unwrap();
            open.sync_data().unwrap();
            disk.sync_dir(Path::new("/i")).unwrap();
            let mut model = bytes(open.as_ref());
            let keys: Vec<Key> = hashes.iter().copied().zip(0..).map(key).collect();
            let mut left = &keys[..];
            let mut cuts = cuts.into_iter().cycle();
            while !left.is_empty() {
                let (mut now, mut rest) = left.split_at(cuts.next().unwrap().min(left.len()));
                if rest.is_empty() {
                    disk.set_seed(seed);
                    disk.lose_power_after(ops);
                    let tried = append(open.as_ref(), geometry, header, now);
                    disk = disk.surviving();
                    open = disk.open(Path::new("/i/f"), Open::Write).unwrap();
                    let found = Header::read(open.as_ref(), geometry).unwrap().unwrap();
                    if found == header {
                        repair(open.as_ref(), geometry, &header).unwrap();
                        if other {
                            now = &now[now.len() / 2..];
                        }
                    } else {
                        prop_assert_eq!(found, tried.unwrap_or(found));
                        now.iter().for_each(|key| put(&mut model, geometry, *key));
                        header = found;
                        (now, rest) = (&[], &[]);
                    }
                }
                header = append(open.as_ref(), geometry, header, now)?;
                now.iter().for_each(|key| put(&mut model, geometry, *key));
                left = rest;
            }
            let mut ours = bytes(open.as_ref());
            // What a batch that was not counted left behind the last item is nobody's.
            let end = geometry.item_at(header.count) as usize;
            ours[end..].fill(0);
            prop_assert!(ours == model);
            prop_assert_eq!(Header::read(open.as_ref(), geometry).unwrap().unwrap(), header);
        }
    }

    #[test]
    fn a_chain_is_walked_from_the_newest_back_to_a_time() {
        let geometry = Geometry { slots: 3, items: 20 };
        let disk = Faulty::healthy();
        let file = file(&disk, geometry);
        let keys: Vec<Key> = [5, 2, 5, 8, 5].into_iter().zip(0..).map(key).collect();
        let header = append(file.as_ref(), geometry, Header::after(0, 0), &keys).unwrap();
        // Stored at 0, 1400 and 2800 ms behind the first: to the second.
        let expected = [(407, 1_002_000), (207, 1_001_000), (7, 1_000_000)];
        assert_eq!(all(file.as_ref(), geometry, &header, 5, i64::MIN), expected);
        assert_eq!(all(file.as_ref(), geometry, &header, 5, 1_001_999), expected[..2]);
        assert_eq!(all(file.as_ref(), geometry, &header, 5, 1_002_000), expected[..1]);
        assert_eq!(all(file.as_ref(), geometry, &header, 8, i64::MIN), [(307, 1_002_000)]);
        assert_eq!(all(file.as_ref(), geometry, &header, 11, i64::MIN), []);
        assert_eq!(of_last_record(file.as_ref(), geometry, &header).unwrap(), 1);
        assert_eq!(geometry_of(file.as_ref(), geometry.file_bytes()).unwrap(), Some(geometry));
    }

    #[test]
    fn chains_that_go_in_circles_or_out_of_the_file_end() {
        let geometry = Geometry { slots: 1, items: 10 };
        let disk = Faulty::healthy();
        let file = file(&disk, geometry);
        let keys: Vec<Key> = [5, 5].into_iter().zip(0..).map(key).collect();
        let header = append(file.as_ref(), geometry, Header::after(0, 0), &keys).unwrap();
        for before in [1u32, 2, 9, 10, 11, i32::MAX as u32, u32::MAX] {
            file.write_all_at(&before.to_be_bytes(), geometry.item_at(1) + 16).unwrap();
            assert_eq!(all(file.as_ref(), geometry, &header, 5, i64::MIN).len(), 2, "{before}");
            file.write_all_at(&before.to_be_bytes(), geometry.slot_at(0)).unwrap();
            assert!(all(file.as_ref(), geometry, &header, 5, i64::MIN).len() <= 2, "{before}");
            file.write_all_at(&2u32.to_be_bytes(), geometry.slot_at(0)).unwrap();
        }
    }
}
