//! Changes as text, to be compared with the statements of a test.
//!
//! `+t(a,b)`, `-t(a,b)`, `t(a,b)->(a,c)`, with `_` for a column that an image lacks, and the reason if a value
//! has no text; `db.t: reason` for a whole table.

use mysql_replication::event::{Row, RowChange};
use mysql_replication::{
    Change, ChangeScope, Effect, Ending, FallbackReason, NoText, Transaction, Value,
};

/// All changes as text: `+t(a,b)`, `-t(a,b)`, `t(a,b)->(a,c)`, with `_` for a column that the image lacks.
pub fn told(transactions: &[Transaction]) -> Vec<String> {
    let mut told = Vec::new();
    for transaction in transactions {
        for change in &transaction.changes {
            let from = told.len();
            tell(change, &mut told);
            if change.effect == Effect::UndoneIfTransactional {
                told[from..].iter_mut().for_each(|text| text.push_str(" undone"));
            }
        }
        match transaction.ending {
            Ending::Committed => {}
            Ending::RolledBack => told.push("rolled back".into()),
            Ending::Prepared => told.push("prepared".into()),
        }
    }
    told
}

fn tell(change: &Change, told: &mut Vec<String>) {
    match &change.what {
        ChangeScope::Rows(rows) => {
            let name = &rows.table.name;
            for change in rows.changes() {
                told.push(match change {
                    Ok(RowChange { before: None, after: Some(after) }) => {
                        format!("+{name}({})", row(&after))
                    }
                    Ok(RowChange { before: Some(before), after: None }) => {
                        format!("-{name}({})", row(&before))
                    }
                    Ok(RowChange { before: Some(before), after: Some(after) }) => {
                        format!("{name}({})->({})", row(&before), row(&after))
                    }
                    Ok(RowChange { before: None, after: None }) => unreachable!("no row at all"),
                    Err(refusal) => format!("{name}: {refusal}"),
                });
            }
        }
        ChangeScope::Table { schema, name, why: FallbackReason::Unreadable(refusal) } => {
            told.push(format!("{schema}.{name}: {refusal}"));
        }
        ChangeScope::Table { schema, name, why } => {
            told.push(format!("{schema}.{name}: {}", why.as_str()))
        }
        ChangeScope::Schema { schema, why } => told.push(format!("{schema}.*: {}", why.as_str())),
        ChangeScope::Everything(why) => told.push(format!("*: {}", why.as_str())),
    }
}

fn row(row: &Row<'_>) -> String {
    let text = |value: &Option<Value<'_>>| match value {
        None => "_".to_owned(),
        Some(value) => match value.tag_text() {
            Ok(text) => text.into_owned(),
            Err(NoText::Null) => "NULL".to_owned(),
            Err(other) => format!("<{}>", other.as_str()),
        },
    };
    row.values().iter().map(text).collect::<Vec<String>>().join(",")
}

/// Compares a row as text with the row that the server selects. The server writes some floating-point numbers with an
/// exponent: these have no canonical text.
pub fn compare(told: &str, expected: &str, which: &str) {
    for (place, (told, expected)) in told.split(',').zip(expected.split(',')).enumerate() {
        let is_long =
            || expected.parse::<f64>().is_ok_and(|number| !(1e-4..1e6).contains(&number.abs()));
        assert!(
            told == expected || told == "<inexact>" && is_long(),
            "{which}, part {place}: {told:?} is not {expected:?}"
        );
    }
    assert_eq!(told.split(',').count(), expected.split(',').count(), "{which}");
}
