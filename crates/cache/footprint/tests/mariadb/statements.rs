//! Random queries over the tables.
//!
//! The result of each depends on the rows alone, not on their order in the table: of values that a collation
//! treats as equal, none is chosen, and `LIMIT` has a complete order. Not here: conditions.

use crate::tables::{Class, SqlTable};
use footprint::SqlMode;
use harness::Random;

/// A column, as a statement names it.
pub struct SqlColumn {
    pub text: String,
    pub class: Class,
}

/// A table or subquery in `FROM`, and its columns.
#[derive(Clone)]
struct Binding {
    name: String,
    columns: Vec<(String, Class)>,
}

pub struct Generator<'t> {
    pub random: Random,
    pub mode: SqlMode,
    /// Whether it has no parts that the reader is not meant to understand.
    pub is_plain: bool,
    /// The number of queries around the present one.
    pub depth: usize,
    tables: &'t [SqlTable],
    /// The tables of the queries around the present place, outermost first.
    scopes: Vec<Vec<Binding>>,
    common: Vec<Binding>,
    aliases: usize,
}

impl<'t> Generator<'t> {
    pub fn new(tables: &'t [SqlTable], mode: SqlMode, random: Random) -> Generator<'t> {
        let (scopes, common) = (Vec::new(), Vec::new());
        Generator { random, mode, is_plain: false, depth: 0, tables, scopes, common, aliases: 0 }
    }

    /// A complete statement.
    pub fn statement(&mut self) -> String {
        (self.depth, self.aliases) = (0, 0);
        self.common.clear();
        self.is_plain = !self.random.chance(3);
        match self.random.below(18) {
            0 => {
                let (sql, columns) = self.subselect();
                let name = self.random.one(&["q", "t0", "w"]).to_owned();
                let with = self.random.one(&["WITH", "WITH", "WITH RECURSIVE"]);
                self.common.push(Binding { name: name.clone(), columns });
                format!("{with} {name} AS ({sql}) {}", self.select())
            }
            1 => self.union(),
            2 => self.limited(),
            3..=5 => self.short(),
            6..=9 => self.pair(),
            10 | 11 => self.nearest(),
            _ => self.select(),
        }
    }

    /// A query of one table with few conditions.
    fn short(&mut self) -> String {
        let table = &self.tables[self.random.below(self.tables.len())];
        self.scopes.push(vec![Self::binding(table, table.name.clone())]);
        self.is_plain = true;
        let depth = self.random.below(2);
        let (item, condition) = (self.column().text, self.condition(depth));
        self.scopes.pop();
        let item = self.random.one(&["COUNT(*)", "id", &item]).to_owned();
        format!("SELECT {item} FROM {} WHERE {condition}", table.name)
    }

    /// A join of two tables by a column of each, or the same as a subquery, with a condition on the second.
    fn pair(&mut self) -> String {
        let (one, other) =
            (self.random.below(self.tables.len()), self.random.below(self.tables.len()));
        let (one, other) = (&self.tables[one], &self.tables[other]);
        self.is_plain = true;
        self.scopes.push(vec![Self::binding(one, "m".to_owned())]);
        let mut first = self.column();
        self.scopes.pop();
        self.scopes.push(vec![Self::binding(other, "o".to_owned())]);
        let (on, filter, column) = (self.condition(0), self.condition(1), self.column().text);
        let mut second = self.column();
        for _ in 0..4 {
            if first.class != second.class {
                second = self.column();
            }
        }
        self.scopes.pop();
        if self.random.chance(2) {
            (first.text, second.text) = ("m.id".to_owned(), "o.id".to_owned());
        }
        // The names are without a table now and then, and would be unclear.
        let [first, second] = [("m", first), ("o", second)].map(|(table, column)| {
            if column.text.contains('.') { column.text } else { format!("{table}.{}", column.text) }
        });
        let on = if self.random.chance(2) { format!(" AND {on}") } else { String::new() };
        let filter = if self.random.chance(3) { format!("{column} IS NULL") } else { filter };
        let (one, other) = (&one.name, &other.name);
        match self.random.below(6) {
            0 | 1 => format!(
                "SELECT m.id FROM {one} m LEFT JOIN {other} o ON {first} = {second}{on} WHERE {filter}"
            ),
            2 => format!(
                "SELECT m.id FROM {other} o RIGHT JOIN {one} m ON {first} = {second}{on} WHERE {filter}"
            ),
            3 => format!(
                "SELECT m.id FROM {one} m, {other} o WHERE {first} = {second}{on} AND {filter}"
            ),
            4 => format!(
                "SELECT m.id FROM {one} m JOIN {other} o ON {first} = {second}{on} WHERE {filter}"
            ),
            _ => format!(
                "SELECT id FROM {one} m WHERE {first} IN (SELECT {second} FROM {other} o WHERE {filter})"
            ),
        }
    }

    fn union(&mut self) -> String {
        let class = self.random.one(&[Class::Integer, Class::Text, Class::Moment]);
        let union = self.random.one(&["UNION", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
        let (one, other) = (self.select_of(Some(class)), self.select_of(Some(class)));
        match self.random.below(3) {
            0 => format!("({one}) {union} ({other})"),
            1 => format!("SELECT COUNT(*) FROM ({one} {union} {other}) AS n"),
            _ => format!("{one} {union} {other}"),
        }
    }

    /// The first rows in a complete order.
    fn limited(&mut self) -> String {
        let table = &self.tables[self.random.below(self.tables.len())];
        self.scopes.push(vec![Self::binding(table, table.name.clone())]);
        let (condition, by, other) = (self.condition(1), self.column().text, self.column().text);
        self.scopes.pop();
        let order = self.random.one(&["ASC", "DESC"]);
        let limit = self.random.one(&["1", "2", "1, 2", "2 OFFSET 1"]);
        let calc = if self.random.chance(4) { "SQL_CALC_FOUND_ROWS " } else { "" };
        format!(
            "SELECT {calc}id, {other} FROM {} WHERE {condition} ORDER BY {by} {order}, id LIMIT {limit}",
            table.name
        )
    }

    /// The rows nearest to a bound, as the next article or the one before.
    pub fn nearest(&mut self) -> String {
        let table = &self.tables[self.random.below(self.tables.len())];
        self.scopes.push(vec![Self::binding(table, table.name.clone())]);
        self.is_plain = true;
        let condition = self.condition(1);
        let (mut by, other) = (self.column(), self.column().text);
        for _ in 0..8 {
            if !matches!(by.class, Class::Integer | Class::Moment) {
                by = self.column();
            }
        }
        let (bound, by) = (self.constant(by.class), by.text);
        self.scopes.pop();
        let (sign, order) =
            self.random.one(&[(">", "ASC"), (">=", "ASC"), ("<", "DESC"), ("<=", "DESC")]);
        let limit = self.random.one(&["1", "1", "2", "3"]);
        let bound = match self.random.below(4) {
            0 => format!("({by} {sign} {bound} OR ({by} = {bound} AND id {sign} 5))"),
            _ => format!("{by} {sign} {bound}"),
        };
        let condition = if self.random.chance(3) { "1 = 1" } else { &condition };
        format!(
            "SELECT id, {other} FROM {} WHERE {bound} AND {condition} ORDER BY {by} {order}, id LIMIT {limit}",
            table.name
        )
    }

    /// A query block with any select list.
    fn select(&mut self) -> String {
        let from = self.from();
        let condition = if self.random.chance(8) { String::new() } else { self.filter() };
        let sql = match self.random.below(12) {
            0..=2 => format!("SELECT COUNT(*) FROM {from}{condition}"),
            3 => format!("SELECT * FROM {from}{condition}"),
            4 => {
                let scope = self.scopes.last().expect("FROM");
                let name = scope[self.random.below(scope.len())].name.clone();
                format!("SELECT {name}.* FROM {from}{condition}")
            }
            5 => self.grouped(&from, &condition),
            6 => self.aggregate(&from, &condition),
            7 => {
                let item = self.safe();
                format!("SELECT DISTINCT {item} FROM {from}{condition}")
            }
            8 => {
                let (item, column) = (self.item(), self.column());
                let constant = self.constant(column.class);
                let having = format!("HAVING x = {constant}");
                format!("SELECT {item}, {} AS x FROM {from}{condition} {having}", column.text)
            }
            _ => {
                let items: Vec<String> =
                    (0..1 + self.random.below(2)).map(|_| self.item()).collect();
                let order = if self.random.chance(4) { " ORDER BY 1" } else { "" };
                format!("SELECT {} FROM {from}{condition}{order}", items.join(", "))
            }
        };
        self.scopes.pop();
        sql
    }

    fn filter(&mut self) -> String {
        let depth = self.random.one(&[0, 0, 1, 1, 2]);
        format!(" WHERE {}", self.condition(depth))
    }

    fn grouped(&mut self, from: &str, condition: &str) -> String {
        let (by, number) = (self.safe(), self.random.below(3));
        let filter = match self.random.below(3) {
            0 => String::new(),
            1 => format!(" HAVING COUNT(*) > {number}"),
            _ => format!(" HAVING k IS NOT NULL AND COUNT(*) >= {number}"),
        };
        format!("SELECT {by} AS k, COUNT(*) FROM {from}{condition} GROUP BY {by}{filter}")
    }

    fn aggregate(&mut self, from: &str, condition: &str) -> String {
        let (safe, column) = (self.safe(), self.column().text);
        let aggregate =
            self.random.one(&["COUNT(#)", "COUNT(DISTINCT #)", "MIN(@)", "MAX(@)", "COUNT(@)"]);
        let item = aggregate.replace('#', &column).replace('@', &safe);
        let group = format!("GROUP_CONCAT({safe} ORDER BY {safe})");
        let item = if self.random.chance(4) { group } else { item };
        format!("SELECT {item} FROM {from}{condition}")
    }

    /// A part of a select list.
    fn item(&mut self) -> String {
        let column = self.column().text;
        match if self.is_plain { 11 } else { self.random.below(12) } {
            0 => format!("{column} IS NULL"),
            1 => format!("({})", self.condition(1)),
            2 => format!("COALESCE({column}, 'none')"),
            3 => format!("CASE WHEN {} THEN {column} ELSE 0 END", self.condition(1)),
            4 if self.depth < 2 => {
                self.depth += 1;
                let sql = self.scalar();
                self.depth -= 1;
                format!("({sql})")
            }
            5 => format!("BINARY {column}"),
            6 => format!("{column} y"),
            7 => "1".into(),
            _ => column,
        }
    }

    /// A value that has one form only: equal values of a text may be written in several.
    fn safe(&mut self) -> String {
        let SqlColumn { text, class } = self.column();
        if class == Class::Integer { text } else { format!("HEX({text})") }
    }

    /// A query with one column, of a kind if one is given.
    pub fn select_of(&mut self, class: Option<Class>) -> String {
        let from = self.from();
        let condition = self.filter();
        let item = match class {
            None => self.random.one(&["1", "*", "NULL"]).to_owned(),
            Some(Class::Text) => format!("HEX({})", self.column().text),
            Some(class) => {
                let mut column = self.column();
                for _ in 0..5 {
                    if column.class == class {
                        break;
                    }
                    column = self.column();
                }
                column.text
            }
        };
        self.scopes.pop();
        format!("SELECT {item} FROM {from}{condition}")
    }

    /// A query with one value.
    pub fn scalar(&mut self) -> String {
        let from = self.from();
        let condition = self.filter();
        let safe = self.safe();
        let item = self.random.one(&["COUNT(*)", "MAX(@)", "MIN(@)", "COUNT(@)", "MAX(@)"]);
        self.scopes.pop();
        format!("SELECT {} FROM {from}{condition}", item.replace('@', &safe))
    }

    /// A subquery with named columns.
    fn subselect(&mut self) -> (String, Vec<(String, Class)>) {
        self.depth += 1;
        let outer = std::mem::take(&mut self.scopes);
        let from = self.from();
        let condition = self.filter();
        let mut columns: Vec<(String, Class)> = Vec::new();
        let mut items = Vec::new();
        for name in ["x", "a", "id"].into_iter().take(1 + self.random.below(3)) {
            let column = self.column();
            items.push(format!("{} AS {name}", column.text));
            columns.push((name.to_owned(), column.class));
        }
        self.scopes = outer;
        self.depth -= 1;
        (format!("SELECT {} FROM {from}{condition}", items.join(", ")), columns)
    }

    fn binding(table: &SqlTable, name: String) -> Binding {
        let columns = table.columns.iter().map(|column| (column.name.to_owned(), column.class));
        Binding { name, columns: columns.collect() }
    }

    /// The tables of a block; opens its scope.
    fn from(&mut self) -> String {
        self.scopes.push(Vec::new());
        let mut sql = self.factor();
        let joins = self.random.one(&[0, 0, 0, 1, 1, 1, 2]);
        for _ in 0..joins {
            let factor = if self.random.chance(7) {
                let (one, other) = (self.factor(), self.factor());
                let join = self.random.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                format!("({one} {join} {other} ON {})", self.condition(0))
            } else {
                self.factor()
            };
            sql = match self.random.below(12) {
                0 => format!("{sql}, {factor}"),
                1 => format!("{sql} CROSS JOIN {factor}"),
                2 => format!("{sql} NATURAL JOIN {factor}"),
                3 => format!("{sql} NATURAL LEFT JOIN {factor}"),
                4 => {
                    let join = self.random.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN"]);
                    format!("{sql} {join} {factor} USING ({})", self.random.one(&["id", "a", "b"]))
                }
                5 if self.random.chance(2) => {
                    let (last, on) = (self.factor(), self.on());
                    format!("{sql} LEFT JOIN {factor} JOIN {last} ON {on} ON {}", self.on())
                }
                _ => {
                    let join = self.random.one(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                    format!("{sql} {join} {factor} ON {}", self.on())
                }
            };
        }
        sql
    }

    /// A join condition: most often equal columns, and more.
    fn on(&mut self) -> String {
        let (mut one, mut other) = (self.column().text, self.column().text);
        let scope = self.scopes.last().expect("FROM");
        let has_id = |binding: &&Binding| binding.columns.iter().any(|(name, _)| name == "id");
        let mut with_id = scope.iter().filter(has_id).map(|binding| binding.name.as_str());
        if let (Some(first), Some(last), true) =
            (with_id.next(), with_id.next_back(), self.random.chance(2))
        {
            (one, other) = (format!("{first}.id"), format!("{last}.id"));
        }
        match self.random.below(6) {
            0 => self.condition(1),
            1 => format!("{one} = {other} AND {}", self.condition(0)),
            2 => format!("{one} = {other} OR {}", self.condition(0)),
            _ => format!("{one} = {other}"),
        }
    }

    /// A table, with or without an alias, or a subquery.
    fn factor(&mut self) -> String {
        if !self.common.is_empty() && self.random.chance(2) {
            let binding = self.common[0].clone();
            let name = binding.name.clone();
            self.bind(binding);
            return name;
        }
        if self.depth < 2 && self.random.chance(9) {
            let (sql, columns) = self.subselect();
            let name = self.alias();
            self.bind(Binding { name: name.clone(), columns });
            return format!("({sql}) {name}");
        }
        let table = &self.tables[self.random.below(self.tables.len())];
        let name = if self.random.chance(3) { table.name.clone() } else { self.alias() };
        self.bind(Self::binding(table, name.clone()));
        let written = self.random.one(&["#", "#", "#", "`#`", "items.#"]).replace('#', &table.name);
        if name == table.name {
            return written;
        }
        format!("{written}{}{name}", self.random.one(&[" ", " AS "]))
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("{}{}", self.random.one(&["u", "U", "v"]), self.aliases)
    }

    fn bind(&mut self, binding: Binding) {
        self.scopes.last_mut().expect("FROM").push(binding);
    }

    /// A column of the present block, or now and then of one around it.
    pub fn column(&mut self) -> SqlColumn {
        let mut at = self.scopes.len() - 1;
        if at > 0 && self.random.chance(6) {
            at = self.random.below(at);
        }
        let scope = &self.scopes[at];
        let binding = &scope[self.random.below(scope.len())];
        let (name, class) = binding.columns[self.random.below(binding.columns.len())].clone();
        let same = |binding: &&Binding| binding.columns.iter().any(|(other, _)| *other == name);
        let is_single = scope.iter().filter(same).count() == 1;
        let text = match self.random.below(8) {
            0..=2 if is_single || self.random.chance(10) => format!("`{name}`"),
            3 => format!("{}.{}", binding.name, name.to_uppercase()),
            4 => format!("`{}`.`{name}`", binding.name),
            _ => format!("{}.{name}", binding.name),
        };
        SqlColumn { text, class }
    }
}
