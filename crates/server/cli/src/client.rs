//! The command line's client for the control interface: one call, one answer as text for the
//! operator. It uses HTTP/1.1 over TCP or a Unix socket, sends the token if one is given, and has a
//! timeout.

mod certificates;
mod follow;
mod hints;
mod trial;

pub use follow::{EventStream, follow};
pub use hints::invalidation_hints;
pub use trial::TRIAL_ERROR;

use crate::text;
use bytes::Bytes;
use command_line::options::{
    CertificatesArgs, ControlArgs, ExplainArgs, MissesArgs, PurgeArgs, StatsArgs, StatusArgs,
    TrialArgs,
};
use control::api::{CALL_BYTES, Explain, Invalidate, InvalidationResult};
use control::metrics_table;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// The timeout for a call. A large invalidation may take a while.
const ANSWER: Duration = Duration::from_secs(60);

/// Runs `pagewell purge`.
///
/// # Errors
/// A sentence for the operator.
pub async fn invalidate(args: &PurgeArgs) -> Result<InvalidationResult, String> {
    let call = Invalidate {
        tags: tags(&args.tags)?,
        urls: args.urls.clone(),
        prefixes: args.prefixes.clone(),
        all: args.all,
        soft: args.soft,
        site: args.site.clone(),
    };
    let body = serde_json::to_vec(&call).map_err(|error| error.to_string())?;
    let answer = call_control(&args.control, Method::POST, "/v1/invalidate", body).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| format!("the answer is not understood: {error}"))
}

/// Returns the given tags; `-` is replaced by the lines of standard input.
fn tags(given: &[String]) -> Result<Vec<String>, String> {
    let (from_input, mut tags): (Vec<_>, Vec<_>) =
        given.iter().cloned().partition(|tag| tag == "-");
    if from_input.is_empty() {
        return Ok(tags);
    }
    let mut text = String::new();
    let bound = CALL_BYTES as u64;
    let read = std::io::stdin().lock().take(bound + 1).read_to_string(&mut text);
    read.map_err(|error| format!("standard input: {error}"))?;
    if text.len() > CALL_BYTES {
        return Err(format!("standard input has more than {CALL_BYTES} bytes"));
    }
    tags.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    if tags.is_empty() {
        Err("standard input names no tag: write one to a line".into())
    } else {
        Ok(tags)
    }
}

/// Runs `pagewell stats`: returns one metric per line, or all as JSON.
///
/// # Errors
/// A sentence for the operator.
pub async fn stats(args: &StatsArgs) -> Result<String, String> {
    let answer = call_control(&args.control, Method::GET, "/v1/stats", Vec::new()).await?;
    let value: serde_json::Value =
        serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    if args.json {
        serde_json::to_string_pretty(&value).map_err(|error| error.to_string())
    } else {
        Ok(table(&value))
    }
}

/// Runs `pagewell explain`.
///
/// # Errors
/// A sentence for the operator.
pub async fn explain(args: &ExplainArgs) -> Result<String, String> {
    if args.changes {
        let answer = call_control(&args.control, Method::GET, "/v1/changes", Vec::new()).await?;
        return shown(&answer, args.json, text::changes);
    }
    let call = Explain {
        url: args.url.clone(),
        method: args.method.clone(),
        headers: lines(&args.headers, &args.cookies),
        tag: args.tag.clone(),
        site: args.site.clone(),
        from: args.from,
    };
    let body = serde_json::to_vec(&call).map_err(|error| error.to_string())?;
    let answer = call_control(&args.control, Method::POST, "/v1/explain", body).await?;
    match args.tag {
        Some(_) => shown(&answer, args.json, text::tag),
        None => shown(&answer, args.json, text::url),
    }
}

/// Runs `pagewell misses`.
///
/// # Errors
/// A sentence for the operator.
pub async fn misses(args: &MissesArgs) -> Result<String, String> {
    let answer = call_control(&args.control, Method::GET, "/v1/misses", Vec::new()).await?;
    shown(&answer, args.json, text::misses)
}

/// Combines the given header fields and cookies to the fields of a request.
fn lines(headers: &[(String, String)], cookies: &[(String, String)]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = headers.iter().cloned().collect();
    for (name, value) in cookies {
        let line = all.entry("cookie".into()).or_default();
        let between = if line.is_empty() { "" } else { "; " };
        *line = format!("{line}{between}{name}={value}");
    }
    all
}

/// Formats an answer as JSON or as text.
fn shown(
    answer: &[u8],
    json: bool,
    words: impl FnOnce(&serde_json::Value) -> String,
) -> Result<String, String> {
    let told: serde_json::Value =
        serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    if json {
        serde_json::to_string_pretty(&told).map_err(|error| error.to_string())
    } else {
        Ok(words(&told).trim_end().to_owned())
    }
}

/// Formats the metrics in the order of the manual, each with its description.
fn table(told: &serde_json::Value) -> String {
    let rows = metrics_table::all().filter_map(|(name, help, _)| {
        let value = told.get(name)?.as_u64()?;
        Some(format!("{value:>16}  {name:<24}  {help}"))
    });
    let limits = told["limits_hit"].as_object().into_iter().flatten();
    let reached = limits.filter_map(|(key, count)| Some((key, count.as_u64()?)));
    let reached = reached.filter(|(_, count)| *count > 0);
    let reached = reached.map(|(key, count)| {
        let name = format!("limits_hit.{key}");
        format!("{count:>16}  {name:<24}  Times that this limit was reached.")
    });
    rows.chain(reached).collect::<Vec<_>>().join("\n")
}

/// Runs `pagewell reload`: returns one line for each changed key.
///
/// # Errors
/// A sentence for the operator.
pub async fn reload(args: &ControlArgs) -> Result<String, String> {
    let answer = call_control(args, Method::POST, "/v1/reload", b"{}".to_vec()).await?;
    let value: serde_json::Value =
        serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    let word = |value: &serde_json::Value| value.as_str().unwrap_or("not given").to_owned();
    let changed = value["changed"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<String> = changed
        .iter()
        .map(|one| format!("{}: {} -> {}", word(&one["key"]), word(&one["from"]), word(&one["to"])))
        .collect();
    let (keys, dropped) = (changed.len(), value["dropped"].as_u64().unwrap_or_default());
    let keys =
        if keys == 1 { "1 key has changed".into() } else { format!("{keys} keys have changed") };
    lines.push(format!("reloaded: {keys}, pages purged: {dropped}"));
    let warnings = value["warnings"].as_array().into_iter().flatten();
    lines.extend(warnings.map(|warning| format!("warning: {}", word(warning))));
    Ok(lines.join("\n"))
}

/// Runs `pagewell ready`.
///
/// # Errors
/// Pagewell is not ready, or does not answer: a sentence for the operator.
pub async fn ready(args: &ControlArgs) -> Result<String, String> {
    let asked = ask(args, Method::GET, "/v1/ready", Vec::new());
    let (status, body) = within(args, async { whole(args, asked.await?).await }).await?;
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    match (value["ready"].as_bool(), value["reasons"].as_array()) {
        (Some(true), _) => Ok("ready".into()),
        (Some(false), Some(reasons)) => {
            let words: Vec<&str> = reasons.iter().filter_map(|word| word.as_str()).collect();
            Err(format!("not ready: {}", words.join(", ")))
        }
        _ if status == StatusCode::OK => Err(not_control(args)),
        _ => Err(refused(args, status, &body)),
    }
}

/// Runs `pagewell status`: returns the findings as text or JSON, and whether none is a problem.
///
/// # Errors
/// A sentence for the operator.
pub async fn status(args: &StatusArgs) -> Result<(String, bool), String> {
    let value = asked_status(&args.control).await?;
    let is_well = value["well"] == true;
    if args.json {
        let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
        return Ok((text, is_well));
    }
    let problems = value["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |one: &serde_json::Value| {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        let lasting = lasts(one);
        format!("{} ({lasting})\n  {}\n  do  {}\n", word("name"), word("what"), word("remedy"))
    };
    let summary = value["summary"].as_str().map(|summary| format!("{summary}\n\n"));
    let text: String = summary.into_iter().chain(problems.iter().map(shown)).collect();
    Ok((text.trim_end().to_owned() + &audits(&value) + &next_steps(&value), is_well))
}

/// The steps of the installation that have not been done, a line for each with its number; empty without any.
fn next_steps(value: &serde_json::Value) -> String {
    let steps = value["next"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |(number, step): (usize, &serde_json::Value)| {
        let word = |key: &str| step[key].as_str().unwrap_or_default();
        format!("\n{}. {} {}", number + 1, word("what"), word("how"))
    };
    let lines: String = steps.iter().enumerate().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n\nNext steps:{lines}") }
}

/// The results of the audits of the last day, a line for each site; empty while all are off.
fn audits(value: &serde_json::Value) -> String {
    let sites = value["audit"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |site: &serde_json::Value| {
        let (name, day) = (site["site"].as_str(), &site["day"]);
        let of = name.map(|name| format!(" of {name}")).unwrap_or_default();
        let (compared, wrong) = (&day["compared"], &day["wrong"]);
        let right = day["right"].as_str().unwrap_or_default();
        let counted = lasted(site["counted_seconds"].as_u64().unwrap_or_default());
        if *compared == 0 {
            let span = if site["month"]["compared"] == 0 { "yet" } else { "within a day" };
            return format!("\naudit{of}: nothing compared {span}; counted for {counted}");
        }
        format!(
            "\naudit{of}: {compared} hits compared within a day, {wrong} wrong; at least {right} are right; counted for {counted}"
        )
    };
    sites.iter().map(line).collect()
}

/// Runs `pagewell trial`: returns the reports as text or JSON, and the exit status.
///
/// # Errors
/// A sentence for the operator; the exit status is [`TRIAL_ERROR`].
pub async fn trial(args: &TrialArgs) -> Result<(String, u8), String> {
    if args.restart {
        let call = serde_json::json!({ "restart": true, "site": args.site });
        let call = call.to_string().into_bytes();
        let answer = call_control(&args.control, Method::POST, "/v1/trial", call).await?;
        let value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        return trial::restarted(&value).map(|text| (text, 0));
    }
    let site = args.site.as_deref().map(|site| format!("site={}", percent_encoded(site)));
    let query: Vec<String> =
        site.into_iter().chain(args.text.then(|| "text=true".into())).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let path = format!("/v1/trial{mark}{}", query.join("&"));
    let answer = call_control(&args.control, Method::GET, &path, Vec::new()).await?;
    let value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    trial::shown(&value, args.json)
}

/// Encodes a value of a query (RFC 3986 section 2.1).
fn percent_encoded(value: &str) -> String {
    value.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Runs `pagewell certificates`: returns the managed certificates as text or JSON.
///
/// # Errors
/// A sentence for the operator.
pub async fn certificates(args: &CertificatesArgs) -> Result<String, String> {
    let answer = call_control(&args.control, Method::GET, "/v1/certificates", Vec::new()).await?;
    let value: serde_json::Value =
        serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    if args.json {
        return serde_json::to_string_pretty(&value).map_err(|error| error.to_string());
    }
    Ok(certificates::text(&value))
}

/// Returns the answer of `GET /v1/status`.
pub(crate) async fn asked_status(args: &ControlArgs) -> Result<serde_json::Value, String> {
    let answer = call_control(args, Method::GET, "/v1/status", Vec::new()).await?;
    serde_json::from_slice(&answer).map_err(|error| error.to_string())
}

/// How long a finding of the running Pagewell has lasted, for people.
pub(crate) fn lasts(finding: &serde_json::Value) -> String {
    match finding["lasting_seconds"].as_u64().unwrap_or_default() {
        0 => "just now".into(),
        seconds => format!("for {}", lasted(seconds)),
    }
}

/// A length of time, for people.
pub(crate) fn lasted(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Returns the uncovered tags: tags of stored pages that no change rule can produce.
///
/// # Errors
/// A sentence for the operator.
pub async fn uncovered_tags(args: &ControlArgs) -> Result<Vec<String>, String> {
    let answer = call_control(args, Method::GET, "/v1/uncovered-tags", Vec::new()).await?;
    let mut value: serde_json::Value =
        serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    serde_json::from_value(value["tags"].take()).map_err(|error| error.to_string())
}

/// Returns the JSON at a path of the control interface; `None` if the path does not exist.
///
/// # Errors
/// A sentence for the operator.
pub async fn tell(args: &ControlArgs, path: &str) -> Result<Option<serde_json::Value>, String> {
    let asked = ask(args, Method::GET, path, Vec::new());
    let (status, body) = within(args, async { whole(args, asked.await?).await }).await?;
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map(Some).map_err(|e| e.to_string()),
        StatusCode::NOT_FOUND => Ok(None),
        _ => Err(refused(args, status, &body)),
    }
}

async fn call_control(
    args: &ControlArgs,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Bytes, String> {
    let asked = ask(args, method, path, body);
    let (status, body) = within(args, async { whole(args, asked.await?).await }).await?;
    if status == StatusCode::OK { Ok(body) } else { Err(refused(args, status, &body)) }
}

/// Runs a call with the timeout [`ANSWER`].
async fn within<T>(
    args: &ControlArgs,
    asked: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let asked = tokio::time::timeout(ANSWER, asked).await;
    asked.map_err(|_| format!("{} did not answer within {ANSWER:?}", args.admin))?
}

/// Sends a call, and waits for the header section of its answer.
async fn ask(
    args: &ControlArgs,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Response<Incoming>, String> {
    config::check_admin_address(&args.admin)
        .map_err(|error| format!("--admin (or PAGEWELL_ADMIN): {error}"))?;
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(file) = &args.token_file {
        let token = std::fs::read_to_string(file)
            .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.trim()));
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let nobody = |error: std::io::Error| {
        format!(
            "no Pagewell answers at {} ({error}); is it running, and is --admin (or PAGEWELL_ADMIN) right?",
            args.admin
        )
    };
    let answer = match args.admin.strip_prefix("unix:") {
        Some(path) => {
            let stream = UnixStream::connect(path).await.map_err(nobody)?;
            over(TokioIo::new(stream), request).await
        }
        None => {
            let stream = TcpStream::connect(&args.admin).await.map_err(nobody)?;
            over(TokioIo::new(stream), request).await
        }
    };
    answer.map_err(|error| format!("{}: {error}", args.admin))
}

async fn whole(
    args: &ControlArgs,
    answer: Response<Incoming>,
) -> Result<(StatusCode, Bytes), String> {
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        return Err(not_control(args));
    }
    let body = answer.into_body().collect().await;
    let body = body.map_err(|error| format!("{}: {error}", args.admin))?;
    Ok((status, body.to_bytes()))
}

/// The error for a server at this address that is not Pagewell's control interface.
fn not_control(args: &ControlArgs) -> String {
    format!(
        "{} answers, but not as Pagewell's control interface does: are visitors served there, or something else? (--admin, by default 127.0.0.1:8081)",
        args.admin
    )
}

/// Formats an error response as text.
fn refused(args: &ControlArgs, status: StatusCode, body: &[u8]) -> String {
    let told: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let explanation = told.get("explanation").and_then(|text| text.as_str());
    match (status, explanation) {
        // These errors concern the call or the configuration file, so the address adds nothing.
        (StatusCode::BAD_REQUEST | StatusCode::CONFLICT, Some(explanation)) => explanation.into(),
        (StatusCode::UNAUTHORIZED, _) => {
            let admin = &args.admin;
            match &args.token_file {
                None => format!(
                    "{admin}: {status}: a token is required; name its file with --token-file or PAGEWELL_TOKEN_FILE (the server has it in admin_token_file)"
                ),
                Some(file) => format!(
                    "{admin}: {status}: {} has another token than the server's admin_token_file; name the right file with --token-file or PAGEWELL_TOKEN_FILE",
                    file.display()
                ),
            }
        }
        _ => {
            let explanation = explanation.unwrap_or("no explanation was given");
            format!("{}: {status}: {explanation}", args.admin)
        }
    }
}

async fn over<IO>(io: IO, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>>
where
    IO: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(io).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_this_moment_has_no_length_of_time() {
        let of = |seconds: u64| lasts(&serde_json::json!({ "lasting_seconds": seconds }));
        assert_eq!([0, 1, 600].map(of), ["just now", "for 1 s", "for 10 min"]);
    }
}
