//! Statements that return the rows nearest to a bound: which pages a look touches, with the rows that were looked up and
//! without.

use super::*;

/// The row after a bound.
fn next(bound: u32) -> String {
    format!("SELECT title FROM news WHERE id > {bound} ORDER BY id LIMIT 1")
}

/// A stage with a page for each bound from 1 to 9.
fn stage(settings: Automatic) -> Stage {
    let store = Store::new(Limits::new(1 << 24));
    let stage = Stage { store, footprints: Footprints::new(Some(settings), 1 << 24) };
    stage.define(&[]);
    for bound in 1..10 {
        stage.store(&stage.store.lease(), &next(bound)).expect("nothing has changed");
    }
    stage
}

fn news(stage: &Stage, id: u32) -> TableChange {
    stage.row("news", None, Some(&[&id.to_string(), "new", "1"]))
}

/// The touched statements, and the counts.
fn look(stage: &Stage, partners: &mut dyn FindPartners, rows: u32) -> (usize, u64, u64) {
    let changes: Vec<_> = (10..10 + rows).map(|id| news(stage, id)).collect();
    let look = now(stage.footprints.look(changes, partners, Duration::ZERO));
    (look.tags().count(), look.neighbours.used, look.neighbours.unknown)
}

#[test]
fn only_the_pages_next_to_a_row_are_touched() {
    let stage = stage(settings());
    let seventh = row(&["7", "old", "1"]);
    assert_eq!(look(&stage, &mut Partners(Some(vec![seventh.clone()])), 1), (3, 1, 0));
    assert_eq!(look(&stage, &mut Partners(Some(vec![row(&["12", "x", "1"])])), 1), (9, 1, 0));
    assert_eq!(look(&stage, &mut Partners(Some(Vec::new())), 1), (9, 1, 0), "no row is nearer");
    assert_eq!(look(&stage, &mut Partners(None), 1), (9, 0, 1), "not known");
    assert_eq!(look(&stage, &mut Partners(Some(vec![seventh])), 33), (9, 0, 33), "too many");
}

#[test]
fn rules_and_settings_leave_look_ups_out() {
    let none = Automatic { partners: PartnerLookups::LeftOut, ..settings() };
    let ignoring = |columns: &[&str]| {
        let mut settings = Automatic { table_prefix: String::new(), ..settings() };
        settings.profile.rules.push(footprint::profile::IgnoreRule::Columns {
            table: "news".to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        });
        settings
    };
    let seventh = || Partners(Some(vec![row(&["7", "old", "1"])]));
    for (settings, expected) in
        [(none, (9, 0, 1)), (ignoring(&["title"]), (9, 0, 1)), (ignoring(&["author"]), (3, 1, 0))]
    {
        assert_eq!(look(&stage(settings), &mut seventh(), 1), expected);
    }
}

/// Stores pages while rows are looked up.
struct Meanwhile<'s> {
    stage: &'s Stage,
    lease: page_store::Lease,
    refused: Vec<Result<(), &'static str>>,
}

impl FindPartners for Meanwhile<'_> {
    fn find<'a>(
        &'a mut self,
        _: &'a SqlSchema,
        _: &'a Lookup,
    ) -> Pin<Box<dyn Future<Output = Option<Vec<SqlRow<'static>>>> + Send + 'a>> {
        Box::pin(async { None })
    }

    fn find_nearest<'a>(
        &'a mut self,
        _: &'a SqlSchema,
        _: &'a [NearestLookup],
    ) -> Pin<Box<dyn Future<Output = NearestRows> + Send + 'a>> {
        // A statement that is in the index, a new one, and one that the row does not satisfy.
        for bound in [1, 0, 99] {
            self.refused.push(self.stage.store(&self.lease, &next(bound)));
        }
        Box::pin(async { vec![Some(vec![row(&["7", "old", "1"])])] })
    }
}

#[test]
fn a_page_that_is_stored_during_the_look_up_is_tested_by_its_condition() {
    let stage = stage(settings());
    let (lease, refused) = (stage.store.lease(), Vec::new());
    let mut meanwhile = Meanwhile { stage: &stage, lease, refused };
    assert_eq!(look(&stage, &mut meanwhile, 1), (3, 1, 0));
    let changed = Err("reads-changed");
    assert_eq!(meanwhile.refused, [changed, changed, Ok(())]);
}
