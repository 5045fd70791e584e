//! Random conditions and constants.
//!
//! Not here: the queries around them.

use crate::statements::{Generator, SqlColumn};
use crate::tables::{Class, MOMENTS, NUMBERS, TEXTS};

/// Constants of all kinds, for comparisons with columns of all kinds.
const ODD: [&str; 40] = [
    "NULL",
    "TRUE",
    "FALSE",
    "5",
    "5.0",
    "5e0",
    "-5",
    "- 1",
    "+5",
    "0x35",
    "X'41'",
    "b'1'",
    "0b101",
    "'5'",
    "'5x'",
    "' 5'",
    "'05'",
    "'5.0'",
    "N'a'",
    "_utf8mb4'a'",
    "_latin1'a'",
    "'a' 'b'",
    "'a'\n'b'",
    "DATE'2020-01-01'",
    "TIMESTAMP'2020-01-01 00:00:01'",
    "20200101",
    "20200101000001",
    "'2020-1-1'",
    "'20200101'",
    "'2020-01-01T00:00:00'",
    "'2020-13-45'",
    "'2020-01-01 '",
    "'2020-02-30'",
    "'2020-01-01x'",
    "'0000-00-00'",
    "'2020-01-01 25:00:00'",
    "18446744073709551615",
    "9007199254740993",
    "0.1",
    "''",
];

const FUNCTIONS: [&str; 16] = [
    "LENGTH(#) > 1",
    "UPPER(#) = 'A'",
    "COALESCE(#, 5) = 5",
    "IFNULL(#, '') = ''",
    "IF(# > 1, 1, 0) = 1",
    "# + 1 = 6",
    "# % 2 = 0",
    "# DIV 2 = 2",
    "- # = 1",
    "CASE # WHEN 5 THEN 1 WHEN 'a' THEN 0 ELSE NULL END",
    "CASE WHEN # = 5 THEN # ELSE 1 END = 1",
    "CONCAT(#, 'a') = 'aa'",
    "CAST(# AS CHAR) = '5'",
    "CAST(# AS SIGNED) = 5",
    "DATE_FORMAT(#, '%Y') = '2020'",
    "# REGEXP '^a'",
];

const TESTS: [&str; 18] = [
    "# IS NULL",
    "# IS NOT NULL",
    "NOT # IS NULL",
    "# IS TRUE",
    "# IS NOT FALSE",
    "# IS UNKNOWN",
    "#",
    "NOT #",
    "# <=> NULL",
    "ISNULL(#)",
    "BINARY # = 'A'",
    "# = BINARY 'A'",
    "BINARY # LIKE 'a%'",
    "# COLLATE utf8mb4_bin = 'a'",
    "# = 'a' COLLATE utf8mb4_bin",
    "# LIKE 'a%' COLLATE utf8mb4_bin",
    "# = 5 = 1",
    "# SOUNDS LIKE 'a'",
];

/// Of the kinds of conditions, those that are meant to be understood, and a subquery.
const PLAIN_ATOMS: [usize; 14] = [0, 0, 0, 0, 9, 9, 12, 14, 14, 17, 17, 17, 22, 24];

impl Generator<'_> {
    /// A condition, possibly of several parts.
    pub fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        let (one, other) = (self.condition(depth - 1), self.condition(depth - 1));
        match self.random.below(if self.is_plain { 11 } else { 14 }) {
            0..=2 => one,
            3 | 4 => format!("{one} AND {other}"),
            5 => format!("{one} OR {other}"),
            6 => format!("({one}) AND ({other})"),
            7 => format!("({one} OR {other})"),
            8 => format!("NOT ({one})"),
            9 => format!("NOT ({one} AND {other})"),
            10 => format!("NOT ({one} OR {other})"),
            11 => {
                format!("{one} {} {other}", self.random.one(&["XOR", "||", "&&", "XOR", "AND NOT"]))
            }
            12 => format!("{} {one}", self.random.one(&["NOT", "!", "NOT NOT"])),
            _ => format!(
                "({one}) {} ({other})",
                self.random.one(&["XOR", "= ", "<=>", "IS TRUE AND", "OR"])
            ),
        }
    }

    /// A condition without parts.
    fn atom(&mut self) -> String {
        let column = self.column();
        let text = column.text.clone();
        match if self.is_plain { self.random.one(&PLAIN_ATOMS) } else { self.random.below(28) } {
            0..=7 => {
                let (op, constant) = (self.comparison(), self.constant(column.class));
                if self.random.chance(5) {
                    format!("{constant} {op} {text}")
                } else {
                    format!("{text} {op} {constant}")
                }
            }
            8 => {
                let (op, other) = (self.comparison(), self.column());
                format!("{text} {op} {}", other.text)
            }
            9..=11 => {
                let not = if self.random.chance(3) { "NOT " } else { "" };
                let list: Vec<String> =
                    (0..1 + self.random.below(4)).map(|_| self.constant(column.class)).collect();
                format!("{text} {not}IN ({})", list.join(", "))
            }
            12 | 13 => {
                let not = if self.random.chance(4) { "NOT " } else { "" };
                let (low, high) = (self.constant(column.class), self.constant(column.class));
                format!("{text} {not}BETWEEN {low} AND {high}")
            }
            14..=16 => self.like(&text),
            17 if self.is_plain => self.random.one(&TESTS[..3]).replace('#', &text),
            17..=20 => self.random.one(&TESTS).replace('#', &text),
            21 => self.random.one(&FUNCTIONS).replace('#', &text),
            22 | 23 if !self.is_plain || column.class == Class::Moment => self.date_part(&text),
            24 | 25 if self.depth < 2 => self.subquery(&column),
            26 => self
                .random
                .one(&["1", "0", "1=1", "1 = 0", "'a'", "NULL", "TRUE", "'1'", "2 > 1"])
                .into(),
            _ if self.is_plain => format!("{text} = {}", self.constant(column.class)),
            _ => self.row(&column),
        }
    }

    fn comparison(&mut self) -> &'static str {
        self.random.one(&["=", "=", "=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
    }

    fn like(&mut self, text: &str) -> String {
        let not = if self.random.chance(3) { "NOT " } else { "" };
        let word = self.random.one(TEXTS);
        let escaped = word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let pattern = match self.random.below(7) {
            0 => format!("%{word}%"),
            1 => format!("{word}%"),
            2 => format!("%{escaped}"),
            3 => format!("_{word}"),
            4 => format!("{}_%", word.chars().take(1).collect::<String>()),
            5 => escaped,
            _ => word.to_owned(),
        };
        let escape = if self.random.chance(10) { " ESCAPE '|'" } else { "" };
        format!("{text} {not}LIKE {}{escape}", self.quoted(&pattern))
    }

    fn date_part(&mut self, text: &str) -> String {
        let part = self.random.one(&["YEAR", "MONTH", "DAY", "DAYOFMONTH", "QUARTER"]);
        let number = self.random.one(&["2020", "1", "0", "2", "12", "'1'", "31", "NULL"]);
        let op = self.comparison();
        match self.random.below(3) {
            0 => format!("{part}({text}) IN ({number}, 1)"),
            1 => format!("{part}({text}) BETWEEN 1 AND {number}"),
            _ => format!("{part}({text}) {op} {number}"),
        }
    }

    fn row(&mut self, column: &SqlColumn) -> String {
        let other = self.column();
        let (one, two) = (self.constant(column.class), self.constant(other.class));
        let (first, second) = (&column.text, &other.text);
        match self.random.below(3) {
            0 => format!("({first}, {second}) = ({one}, {two})"),
            1 => format!("({first}, {second}) IN (({one}, {two}), ({two}, {one}))"),
            _ => format!("{one} IN ({first}, {second})"),
        }
    }

    fn subquery(&mut self, column: &SqlColumn) -> String {
        self.depth += 1;
        let (text, not) = (&column.text, if self.random.chance(3) { "NOT " } else { "" });
        let op = self.comparison();
        let sql = match self.random.below(5) {
            0 => format!("{not}EXISTS ({})", self.select_of(None)),
            1 | 2 => format!("{text} {not}IN ({})", self.select_of(Some(column.class))),
            3 => format!("{text} {op} ({})", self.scalar()),
            _ => {
                let some = self.random.one(&["ANY", "ALL", "SOME"]);
                let op = if op == "<=>" { "=" } else { op };
                format!("{text} {op} {some} ({})", self.select_of(Some(column.class)))
            }
        };
        self.depth -= 1;
        sql
    }

    /// A constant, most often of the kind of the values that it is compared with.
    pub fn constant(&mut self, class: Class) -> String {
        let class = match self.random.below(if self.is_plain { 16 } else { 10 }) {
            0 => self.random.one(&[Class::Integer, Class::Number, Class::Text, Class::Moment]),
            1 => return self.random.one(&ODD).into(),
            _ => class,
        };
        match class {
            Class::Integer => {
                let number = self.random.one(&["0", "1", "-1", "2", "5", "7", "10", "100"]);
                if self.random.chance(4) { self.quoted(number) } else { number.into() }
            }
            Class::Number => self.random.one(NUMBERS).into(),
            Class::Text | Class::Bytes => {
                let text = self.random.one(TEXTS);
                self.quoted(text)
            }
            Class::Moment => {
                let moment = self.random.one(MOMENTS);
                let moment = if self.random.chance(2) { &moment[..10] } else { moment };
                self.quoted(moment)
            }
            Class::Other => self.quoted("a"),
        }
    }

    /// A text constant, as the mode of the session writes it.
    pub fn quoted(&mut self, text: &str) -> String {
        let text = if self.mode.has_plain_backslashes {
            text.to_owned()
        } else {
            // `\%` and `\_` stay as they are in a text.
            text.replace('\\', "\\\\").replace("\\\\%", "\\%").replace("\\\\_", "\\_")
        };
        match self.random.below(6) {
            0 if !self.mode.has_ansi_quotes => format!("\"{}\"", text.replace('"', "\"\"")),
            1 if !self.mode.has_plain_backslashes => format!("'{}'", text.replace('\'', "\\'")),
            _ => format!("'{}'", text.replace('\'', "''")),
        }
    }
}
