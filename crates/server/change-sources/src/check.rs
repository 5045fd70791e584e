//! The database part of `pagewell check` and `pagewell changes suggest`: whether a database can be
//! followed with its current settings, and which tables it has.
//!
//! A check does everything that following does, up to the first event of the stream. It thereby
//! tests the account's privileges by using them, and changes nothing on the server. Not here:
//! printing.

use command_line::options::Application;
use config::{Config, Database, DatabaseServer};
use database_links::fault::{Recovery, StreamFault};
use databases::source::{self, Stream};
use databases::stream_types::{Aim, Resume};
use std::sync::Arc;

/// The remedy while a database cannot be reached.
const OFFLINE: &str = "--offline checks without the databases";

/// Tries to follow each database of a configuration. Returns one sentence for each database, and one for each setting
/// that works but could be improved.
///
/// # Errors
/// The reasons why databases cannot be followed, one line each.
pub async fn all(config: &Config) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut followable, mut warnings, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for database in all_of(config) {
        let place = format!("{}, {}", database.server.place, database.name);
        match one(database).await {
            Ok(said) => {
                warnings.extend(said.iter().map(|why| format!("{place}: {why}")));
                let line = format!("{place}: answers, and can be followed");
                // Sites may have databases in common.
                if !followable.contains(&line) {
                    followable.push(line);
                }
            }
            Err(why) => errors.push(format!("{place}: {why}")),
        }
    }
    if errors.is_empty() { Ok((followable, warnings)) } else { Err(errors.join("\n")) }
}

/// Checks before a zero-downtime restart whether the databases of a configuration can be followed.
/// The old process keeps running if they cannot. An unreachable database is no error.
///
/// # Errors
/// A database is reachable, but its rules or its settings do not fit: a sentence for the operator.
pub async fn before_following(config: &Config) -> Result<(), String> {
    // One check may be slow, so all run concurrently.
    let asked: Vec<_> = all_of(config)
        .cloned()
        .map(|database| {
            tokio::spawn(async move {
                let wrong = |why: &dyn std::fmt::Display| {
                    Err(format!("{}, {}: {why}", database.server.place, database.name))
                };
                match source::connect(&database, Aim::Check).await {
                    Ok(connected) => connected.fits.or_else(|why| wrong(&why)),
                    Err(broken) if matches!(broken.then, Recovery::Unusable | Recovery::Lost) => {
                        wrong(&broken.text)
                    }
                    Err(_) => Ok(()),
                }
            })
        })
        .collect();
    for one in asked {
        // A panic is in the log already, and would occur again when the database is followed.
        one.await.unwrap_or(Ok(()))?;
    }
    Ok(())
}

/// Returns the databases of all sites, and their cluster streams.
fn all_of(config: &Config) -> impl Iterator<Item = &Arc<Database>> {
    config.all_sites().flat_map(|site| site.databases.iter().chain(&site.cluster))
}

async fn one(database: &Arc<Database>) -> Result<Vec<String>, String> {
    let not_connected = |broken: StreamFault| match broken.then {
        Recovery::Unusable | Recovery::Lost => broken.text,
        Recovery::Again | Recovery::Gap => format!("{}; {OFFLINE}", broken.text),
    };
    let mut connected = source::connect(database, Aim::Check).await.map_err(not_connected)?;
    connected.fits.map_err(|error| error.to_string())?;
    // A replication slot of PostgreSQL has one reader, which may be the running Pagewell.
    if !matches!(connected.stream, Stream::Postgres(_)) {
        let begun = connected.stream.start(&connected.committed, Resume::Never).await;
        begun.map_err(|broken| broken.text)?;
        connected
            .stream
            .next(&|applied, _| Some(applied.clone()))
            .await
            .map_err(|broken| broken.text)?;
    }
    Ok(connected.warnings.into_iter().map(|(_, why)| why).collect())
}

/// Returns proposed rules for the tables of a database, as text for the configuration.
///
/// # Errors
/// The tables could not be queried, or there is none.
pub async fn suggest(
    server: &DatabaseServer,
    name: Option<&str>,
    application: Option<Application>,
) -> Result<String, String> {
    let schema = source::schema(server).await;
    let (schema, left_out) =
        schema.map_err(|broken| format!("{}: {}", server.place, broken.text))?;
    if schema.tables.is_empty() && left_out.is_empty() {
        let name = &server.account.database;
        return Err(format!("{name} has no table that the account may read (GRANT SELECT)"));
    }
    if application == Some(Application::WordPress) {
        let rules = change_feed::suggest_for_wordpress(&schema, name);
        return rules.map_err(|why| format!("{}: {why}", server.place));
    }
    let left_out: String = left_out.iter().map(|why| format!("# {why}\n")).collect();
    Ok(change_feed::suggest(&schema, name) + &left_out)
}
