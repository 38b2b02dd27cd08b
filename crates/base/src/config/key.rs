//! What the table says about one configuration key, and which keys a role knows.
//!
//! Invariant  A name stands at most once in a section. Where two sections of a role share a name (`listenPort`),
//!            the role's first section owns it; in Java one property line sets both.
//! Java       `MixAll.properties2Object`: what a setter takes is what `Kind::parse` accepts, but a value that Java
//!            drops without a word is an error here.

use std::fmt;

use super::table;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub section: Section,
    pub kind: Kind,
    pub default: &'static str,
    /// What stands in at run time for an empty value, in words; empty when nothing does.
    pub when_empty: &'static str,
    /// Among those Java prints at start (`printImportantConfig`).
    pub important: bool,
    /// Lowest and highest number allowed, where that is narrower than the kind.
    pub range: Option<(i64, i64)>,
    pub effect: Effect,
}

/// The Java class a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Broker,
    MessageStore,
    NettyServer,
    NettyClient,
    Auth,
    Namesrv,
    Controller,
    Proxy,
    TieredStore,
    /// Of no Java class.
    Own,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Long,
    Double,
    Str,
    /// A Java enum, by the names of its constants.
    Choice(&'static [&'static str]),
}

/// When a new value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    Hot,
    /// At the next start.
    Restart,
    /// Never yet: accepted and shown, so that a Java file loads, but nothing reads it.
    NotBuilt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Broker,
    NameServer,
}

/// Why a text is not a value of a key; [`super::ConfigError`] adds which key and which text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    Kind,
    Range { min: i64, max: i64 },
}

/// The key that `name` means to `role`.
pub fn find(role: Role, name: &str) -> Option<&'static Key> {
    role.sections().iter().flat_map(|section| section.keys()).find(|key| key.name == name)
}

impl Role {
    /// The sections whose keys the role reads; of two keys with one name, the earlier section's counts.
    pub fn sections(self) -> &'static [Section] {
        match self {
            Role::Broker => &[
                Section::Broker,
                Section::MessageStore,
                Section::NettyServer,
                Section::NettyClient,
                Section::Auth,
                Section::Own,
            ],
            Role::NameServer => &[Section::Namesrv, Section::NettyServer],
        }
    }

    /// Every key of the role once, sorted by name.
    pub fn keys(self) -> Vec<&'static Key> {
        let mut keys: Vec<&'static Key> = self.sections().iter().flat_map(|section| section.keys()).collect();
        keys.sort_by_key(|key| key.name); // stable, so the earlier section stays in front
        keys.dedup_by_key(|key| key.name);
        keys
    }
}

impl Section {
    pub const ALL: [Section; 10] = [
        Section::Broker,
        Section::MessageStore,
        Section::NettyServer,
        Section::NettyClient,
        Section::Auth,
        Section::Namesrv,
        Section::Controller,
        Section::Proxy,
        Section::TieredStore,
        Section::Own,
    ];

    pub fn java_class(self) -> &'static str {
        match self {
            Section::Broker => "BrokerConfig",
            Section::MessageStore => "MessageStoreConfig",
            Section::NettyServer => "NettyServerConfig",
            Section::NettyClient => "NettyClientConfig",
            Section::Auth => "AuthConfig",
            Section::Namesrv => "NamesrvConfig",
            Section::Controller => "ControllerConfig",
            Section::Proxy => "ProxyConfig",
            Section::TieredStore => "tieredstore.MessageStoreConfig",
            Section::Own => "CometMQ",
        }
    }

    /// In the order of the Java class.
    pub fn keys(self) -> &'static [Key] {
        match self {
            Section::Broker => &table::BROKER,
            Section::MessageStore => &table::MESSAGE_STORE,
            Section::NettyServer => &table::NETTY_SERVER,
            Section::NettyClient => &table::NETTY_CLIENT,
            Section::Auth => &table::AUTH,
            Section::Namesrv => &table::NAMESRV,
            Section::Controller => &table::CONTROLLER,
            Section::Proxy => &table::PROXY,
            Section::TieredStore => &table::TIERED_STORE,
            Section::Own => &table::OWN,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bool => f.write_str("true or false"),
            Kind::Int | Kind::Long => f.write_str("a whole number"),
            Kind::Double => f.write_str("a number"),
            Kind::Str => f.write_str("text"),
            Kind::Choice(names) => write!(f, "one of {}", names.join(", ")),
        }
    }
}

impl Key {
    /// The trimmed `text` as this key keeps it: one spelling a value, so that equal values are equal texts.
    pub(super) fn parse(&self, text: &str) -> Result<String, Misfit> {
        let text = text.trim();
        match self.kind {
            Kind::Bool if text.eq_ignore_ascii_case("true") => Ok("true".to_owned()),
            Kind::Bool if text.eq_ignore_ascii_case("false") => Ok("false".to_owned()),
            Kind::Bool => Err(Misfit::Kind),
            Kind::Int => self.parse_whole(text, (i32::MIN.into(), i32::MAX.into())),
            Kind::Long => self.parse_whole(text, (i64::MIN, i64::MAX)),
            Kind::Double => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(format!("{number:?}")),
                _ => Err(Misfit::Kind),
            },
            Kind::Str => Ok(text.to_owned()),
            Kind::Choice(names) if names.contains(&text) => Ok(text.to_owned()),
            Kind::Choice(_) => Err(Misfit::Kind),
        }
    }

    fn parse_whole(&self, text: &str, of_kind: (i64, i64)) -> Result<String, Misfit> {
        let (min, max) = self.range.unwrap_or(of_kind);
        let number: i128 = text.parse().map_err(|_| Misfit::Kind)?;
        if number < min.into() || number > max.into() {
            return Err(Misfit::Range { min, max });
        }
        Ok(number.to_string())
    }

    pub(super) const fn when_empty(mut self, words: &'static str) -> Key {
        self.when_empty = words;
        self
    }

    pub(super) const fn within(mut self, min: i64, max: i64) -> Key {
        self.range = Some((min, max));
        self
    }

    pub(super) const fn positive(self) -> Key {
        match self.kind {
            Kind::Int => self.within(1, i32::MAX as i64),
            _ => self.within(1, i64::MAX),
        }
    }

    /// 0 lets the system pick.
    pub(super) const fn port(self) -> Key {
        self.within(0, 65_535)
    }

    pub(super) const fn important(mut self) -> Key {
        self.important = true;
        self
    }

    pub(super) const fn hot(mut self) -> Key {
        self.effect = Effect::Hot;
        self
    }

    pub(super) const fn restart(mut self) -> Key {
        self.effect = Effect::Restart;
        self
    }
}

pub(super) const fn bool(name: &'static str, default: &'static str) -> Key {
    row(name, Kind::Bool, default)
}

pub(super) const fn int(name: &'static str, default: &'static str) -> Key {
    row(name, Kind::Int, default)
}

pub(super) const fn long(name: &'static str, default: &'static str) -> Key {
    row(name, Kind::Long, default)
}

pub(super) const fn double(name: &'static str, default: &'static str) -> Key {
    row(name, Kind::Double, default)
}

pub(super) const fn str(name: &'static str, default: &'static str) -> Key {
    row(name, Kind::Str, default)
}

pub(super) const fn choice(name: &'static str, default: &'static str, names: &'static [&'static str]) -> Key {
    row(name, Kind::Choice(names), default)
}

const fn row(name: &'static str, kind: Kind, default: &'static str) -> Key {
    Key {
        name,
        section: Section::Broker, // `of` says which
        kind,
        default,
        when_empty: "",
        important: false,
        range: None,
        effect: Effect::NotBuilt,
    }
}

/// Puts rows into their section.
pub(super) const fn of<const N: usize>(section: Section, mut keys: [Key; N]) -> [Key; N] {
    let mut i = 0;
    while i < N {
        keys[i].section = section;
        i += 1;
    }
    keys
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all() -> impl Iterator<Item = &'static Key> {
        Section::ALL.into_iter().flat_map(|section| section.keys())
    }

    #[test]
    fn sections_have_as_many_keys_as_the_java_classes() {
        let counts = Section::ALL.map(|section| (section.java_class(), section.keys().len()));
        let java = [
            ("BrokerConfig", 243),
            ("MessageStoreConfig", 219),
            ("NettyServerConfig", 18),
            ("NettyClientConfig", 20),
            ("AuthConfig", 26),
            ("NamesrvConfig", 22),
            ("ControllerConfig", 28),
            ("ProxyConfig", 156),
            ("tieredstore.MessageStoreConfig", 35),
            ("CometMQ", 1),
        ];
        assert_eq!(counts, java);
    }

    #[test]
    fn every_row_is_filed_once_under_its_own_section() {
        for section in Section::ALL {
            let names: HashSet<&str> = section.keys().iter().map(|key| key.name).collect();
            assert_eq!(names.len(), section.keys().len(), "a name twice in {}", section.java_class());
            assert!(section.keys().iter().all(|key| key.section == section), "{}", section.java_class());
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_key_in_its_one_spelling() {
        for key in all() {
            assert_eq!(key.parse(key.default), Ok(key.default.to_owned()), "{}", key.name);
        }
    }

    #[test]
    fn only_numbers_have_a_range_and_it_fits_their_kind() {
        for key in all() {
            let Some((min, max)) = key.range else { continue };
            assert!(min <= max, "{}", key.name);
            match key.kind {
                Kind::Int => assert!(i32::try_from(min).is_ok() && i32::try_from(max).is_ok(), "{}", key.name),
                Kind::Long => {}
                _ => panic!("{} has a range and is no whole number", key.name),
            }
        }
    }

    #[test]
    fn only_an_empty_text_has_something_that_stands_in() {
        for key in all().filter(|key| !key.when_empty.is_empty()) {
            assert!(key.default.is_empty() && key.kind == Kind::Str, "{}", key.name);
        }
    }

    #[test]
    fn the_names_that_sections_of_a_role_share_are_these() {
        let shared = |role: Role| -> Vec<&str> {
            let mut seen = HashSet::new();
            let rows = role.sections().iter().flat_map(|section| section.keys());
            rows.map(|key| key.name).filter(|name| !seen.insert(*name)).collect()
        };
        assert_eq!(shared(Role::Broker), ["listenPort", "writeBufferHighWaterMark", "writeBufferLowWaterMark"]);
        assert_eq!(shared(Role::NameServer), [""; 0]);
    }

    #[test]
    fn a_role_picks_its_own_listen_port() {
        let port = |role| find(role, "listenPort").map(|key| (key.section, key.default));
        assert_eq!(port(Role::Broker), Some((Section::Broker, "10911")));
        assert_eq!(port(Role::NameServer), Some((Section::NettyServer, "9876")));
    }

    #[test]
    fn a_role_lists_a_shared_name_once_and_in_order() {
        let names: Vec<&str> = Role::Broker.keys().iter().map(|key| key.name).collect();
        assert!(names.is_sorted());
        assert_eq!(names.len(), 243 + 219 + 18 + 20 + 26 - 3 + 1);
    }
}
