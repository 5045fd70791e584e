//! Random tables, their rows, and changes of single rows.
//!
//! The values of a type are few and collide: by case, accents, blanks, conversions. Not here: statements.

use harness::{Random, SqlProduct};

/// The class of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Integer,
    Number,
    Text,
    Bytes,
    Moment,
    Other,
}

pub struct SqlTable {
    pub name: String,
    pub columns: Vec<TableColumn>,
    keys: Vec<String>,
    engine: &'static str,
}

pub struct TableColumn {
    pub name: &'static str,
    pub class: Class,
    pub is_generated: bool,
    definition: String,
    values: &'static [&'static str],
}

/// A change of one row: its statement, and the row's id before and after.
pub struct RecordedChange {
    pub table: usize,
    pub sql: String,
    pub before: Option<usize>,
    pub after: Option<usize>,
}

const IDS: usize = 14;
/// All tables share these names, so that columns can be joined by them.
const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "2g"];

const INTEGERS: &[&str] = &["0", "1", "-1", "2", "5", "7", "10", "100"];
const UNSIGNED: &[&str] = &["0", "1", "2", "5", "7", "10", "255"];
const BIG: &[&str] = &["0", "-1", "5", "9007199254740993", "9223372036854775807", "1"];
const BIG_UNSIGNED: &[&str] = &["0", "5", "1", "9007199254740992", "18446744073709551615"];
pub const NUMBERS: &[&str] = &["0", "0.5", "1", "-1.25", "5", "5.01", "100", "0.1"];
pub const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "A",
    "á",
    "a\u{301}",
    "b",
    "B",
    "ab",
    "AB",
    "a b",
    "a ",
    "a  ",
    "ss",
    "s",
    "ß",
    "ẞ",
    "straße",
    "STRASSE",
    "5",
    "5x",
    " 5",
    "05",
    "5.0",
    "-1",
    "0",
    "1",
    "%",
    "_",
    "a%",
    "a_b",
    "\\",
    "a\\b",
    "10%",
    "ü",
    "y",
    "u",
    "ae",
    "æ",
    "å",
    "aa",
    "é",
    "e",
    "ö",
    "o",
    "i",
    "ı",
    "İ",
    "😀",
    "😁",
    "日本",
    "it's",
    "say \"a\"",
    "a\tb",
    "\u{ad}a",
    "ﬁ",
    "fi",
    "2020-01-01",
    "x\u{0}",
];
const BYTES: &[&str] =
    &["", "a", "A", "a ", "5", "ß", "ss", "\\", "a%", "x'ff'", "x'61ff'", "x'00'"];
const DATES: &[&str] =
    &["0000-00-00", "2020-00-00", "2020-01-01", "2020-01-02", "2019-12-31", "2020-02-29"];
pub const MOMENTS: &[&str] = &[
    "0000-00-00 00:00:00",
    "2020-01-01 00:00:00",
    "2020-01-01 00:00:01",
    "2020-01-01 10:00:00.5",
    "2020-01-02 00:00:00",
    "2019-12-31 23:59:59",
    "2020-00-00 00:00:00",
];
const ENUMS: &[&str] = &["a", "b", "5", ""];
const TIMES: &[&str] = &["00:00:00", "10:00:00", "-01:00:00"];
const YEARS: &[&str] = &["2020", "2019", "0"];

const COLLATIONS: [&str; 8] = [
    "utf8mb4_general_ci",
    "utf8mb4_general_ci",
    "utf8mb4_unicode_520_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_bin",
    "utf8mb4_swedish_ci",
    "utf8mb4_general_nopad_ci",
    "utf8mb3_general_ci",
];

/// A type: its name, what its values are, and some of them.
type ColumnType = (&'static str, Class, &'static [&'static str]);

const TYPES: [ColumnType; 24] = [
    ("TINYINT", Class::Integer, INTEGERS),
    ("INT", Class::Integer, INTEGERS),
    ("INT", Class::Integer, INTEGERS),
    ("INT UNSIGNED", Class::Integer, UNSIGNED),
    ("BIGINT", Class::Integer, BIG),
    ("BIGINT UNSIGNED", Class::Integer, BIG_UNSIGNED),
    ("DECIMAL(8,2)", Class::Number, NUMBERS),
    ("DOUBLE", Class::Number, NUMBERS),
    ("FLOAT", Class::Number, NUMBERS),
    ("VARCHAR(20)", Class::Text, TEXTS),
    ("VARCHAR(20)", Class::Text, TEXTS),
    ("VARCHAR(20)", Class::Text, TEXTS),
    ("CHAR(6)", Class::Text, TEXTS),
    ("TEXT", Class::Text, TEXTS),
    ("VARBINARY(20)", Class::Bytes, BYTES),
    ("BLOB", Class::Bytes, BYTES),
    ("BINARY(3)", Class::Bytes, BYTES),
    ("DATE", Class::Moment, DATES),
    ("DATETIME", Class::Moment, MOMENTS),
    ("DATETIME(3)", Class::Moment, MOMENTS),
    ("TIMESTAMP", Class::Moment, MOMENTS),
    ("ENUM('a','b','5')", Class::Other, ENUMS),
    ("TIME", Class::Other, TIMES),
    ("YEAR", Class::Other, YEARS),
];

/// The collation, or the one of MySQL that also compares the blanks at the end.
fn collation(name: &'static str, product: SqlProduct) -> &'static str {
    match (name, product) {
        ("utf8mb4_general_nopad_ci", SqlProduct::MySql) => "utf8mb4_0900_ai_ci",
        _ => name,
    }
}

impl TableColumn {
    fn draw(name: &'static str, product: SqlProduct, random: &mut Random) -> TableColumn {
        let (data_type, class, values) = random.one(&TYPES);
        let collation = match class {
            Class::Text => format!(" COLLATE {}", collation(random.one(&COLLATIONS), product)),
            _ => String::new(),
        };
        let charset = match collation.strip_prefix(" COLLATE ") {
            Some(collation) => {
                format!(" CHARACTER SET {}", collation.split('_').next().unwrap_or_default())
            }
            None => String::new(),
        };
        let null = if random.chance(3) { " NOT NULL" } else { " NULL" };
        let definition = format!("`{name}` {data_type}{charset}{collation}{null}");
        TableColumn { name, class, is_generated: false, definition, values }
    }

    fn is_long(&self) -> bool {
        ["TEXT", "BLOB"].iter().any(|data_type| self.definition.contains(data_type))
    }

    /// A value, as the statements of changes write it.
    fn value(&self, random: &mut Random) -> String {
        if random.chance(6) {
            return "NULL".into();
        }
        let value = random.one(self.values);
        match self.class {
            Class::Integer | Class::Number => value.to_owned(),
            _ if value.starts_with("x'") => value.to_owned(),
            _ => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
        }
    }
}

impl SqlTable {
    pub fn draw(at: usize, product: SqlProduct, random: &mut Random) -> SqlTable {
        let mut columns = vec![TableColumn {
            name: "id",
            class: Class::Integer,
            is_generated: false,
            definition: "id INT NOT NULL".into(),
            values: INTEGERS,
        }];
        let mut names = NAMES.to_vec();
        for _ in 0..2 + random.below(5) {
            let name = names.remove(random.below(names.len()));
            columns.push(TableColumn::draw(name, product, random));
        }
        let mut keys =
            vec![if random.chance(5) { "UNIQUE (id)" } else { "PRIMARY KEY (id)" }.into()];
        for column in &columns[1..] {
            let length = if column.is_long() { "(4)" } else { "" };
            match random.below(6) {
                0 if !column.is_long() => keys.push(format!("UNIQUE (`{}`, id)", column.name)),
                1 => keys.push(format!("KEY (`{}`{length})", column.name)),
                2 if column.class != Class::Other && !column.is_long() && random.chance(3) => {
                    keys.push(format!("UNIQUE (`{}`)", column.name));
                }
                _ => {}
            }
        }
        if random.chance(5) {
            columns.push(TableColumn {
                name: "g",
                class: Class::Integer,
                is_generated: true,
                definition: "g INT AS (id % 3) VIRTUAL".into(),
                values: INTEGERS,
            });
        }
        let engine = random.one(&["MyISAM", "MyISAM", "MyISAM", "InnoDB"]);
        SqlTable { name: format!("t{at}"), columns, keys, engine }
    }

    /// The statement that creates it. Tables without transactions are created sooner.
    pub fn create(&self) -> String {
        let mut parts: Vec<&str> = self.columns.iter().map(|column| &*column.definition).collect();
        parts.extend(self.keys.iter().map(String::as_str));
        format!("CREATE TABLE {} ({}) ENGINE={}", self.name, parts.join(", "), self.engine)
    }

    pub fn row(&self, id: usize) -> String {
        format!("SELECT * FROM {} WHERE id = {id}", self.name)
    }

    /// Whether the server leaves the column out of the log with `row_image=NOBLOB` unless it changed.
    pub fn is_long(&self, column: usize) -> bool {
        self.columns[column].is_long()
    }

    pub fn insert(&self, random: &mut Random) -> (usize, String) {
        let id = 1 + random.below(IDS);
        let own = self.columns.iter().filter(|column| !column.is_generated);
        let values: Vec<String> = own
            .map(|column| if column.name == "id" { id.to_string() } else { column.value(random) })
            .collect();
        let names: Vec<String> = self
            .columns
            .iter()
            .filter(|column| !column.is_generated)
            .map(|column| format!("`{}`", column.name))
            .collect();
        let (names, values) = (names.join(", "), values.join(", "));
        (id, format!("INSERT INTO {} ({names}) VALUES ({values})", self.name))
    }

    fn update(&self, id: usize, random: &mut Random) -> (usize, String) {
        let mut after = id;
        let mut sets = Vec::new();
        for _ in 0..1 + random.below(2) {
            let column = &self.columns[random.below(self.columns.len())];
            if column.is_generated {
                continue;
            }
            let value = if column.name == "id" {
                if !random.chance(3) {
                    continue;
                }
                after = 1 + random.below(IDS);
                after.to_string()
            } else {
                column.value(random)
            };
            sets.push(format!("`{}` = {value}", column.name));
        }
        if sets.is_empty() {
            sets.push("id = id".into());
        }
        (after, format!("UPDATE {} SET {} WHERE id = {id}", self.name, sets.join(", ")))
    }
}

impl RecordedChange {
    /// A change of one of the tables, which have rows with these ids.
    pub fn draw(tables: &[SqlTable], ids: &[Vec<usize>], random: &mut Random) -> RecordedChange {
        let at = random.below(tables.len());
        let table = &tables[at];
        let id = if ids[at].is_empty() { 0 } else { random.one(&ids[at]) };
        match random.below(if ids[at].len() > 9 { 2 } else { 7 }) {
            0 if ids[at].len() > 2 => {
                let sql = format!("DELETE FROM {} WHERE id = {id}", table.name);
                RecordedChange { table: at, sql, before: Some(id), after: None }
            }
            1 | 2 => {
                let (id, sql) = table.insert(random);
                RecordedChange { table: at, sql, before: None, after: Some(id) }
            }
            _ => {
                let (after, sql) = table.update(id, random);
                RecordedChange { table: at, sql, before: Some(id), after: Some(after) }
            }
        }
    }
}
