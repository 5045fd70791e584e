//! A parsed scenario: the parser creates it from a file, and the engine executes it.
//!
//! Only the syntax has been checked. A [`Text`] still contains its placeholders (`{now+10s}`), which are
//! replaced when the line is executed. Programs that list the scenarios, or check that each reason occurs in
//! one, use these types.

use std::time::Duration;

/// A parsed scenario file.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The path of the file below its directory.
    pub name: String,
    /// The statement that the scenario tests, in one sentence.
    pub title: String,
    /// The sections of the standards that it tests, such as `RFC9111#4.3.4`.
    pub spec: Vec<String>,
    /// The lines of TOML for the subject.
    pub config: Vec<String>,
    /// Further command line flags for the subject.
    pub flags: Vec<String>,
    /// The reason why the scenario is known to fail, if it is.
    pub pending: Option<String>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Story {
    /// Whether the scenario advances the subject's clock.
    pub fn moves_clock(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Clock(_)))
    }
}

/// One line of the scenario, or one `origin` block.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line number in the file, counted from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The action of the step.
    pub action: Action,
}

/// Text whose placeholders, such as `{now}`, are replaced when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

/// The action of a step.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are the words of the lines
pub enum Action {
    /// Adds rules to the origin.
    Rules(Vec<Rule>),
    /// Sends a request and checks the answer.
    Ask { client: String, message: Message, expect: Expectation },
    /// Sends a request and continues (`&`).
    Send { client: String, message: Message },
    /// Waits for the answer to a request sent with `&`, and checks it.
    Collect { client: String, expect: Expectation },
    /// Repeats a request until its answer is as expected.
    Repeat { client: String, message: Message, expect: Expectation },
    /// Reads another answer from the client's connection, and checks it.
    More { client: String, expect: Expectation },
    /// The client closes its sending direction, and still reads.
    Finish { client: String },
    /// The client closes its connection, even if it waits for an answer.
    Leave { client: String },
    /// Advances the subject's clock.
    Clock(Duration),
    /// The origin refuses connections from now on, and closes the open ones.
    OriginDown,
    /// The origin listens again, on the same port.
    OriginUp,
    /// Waits until this number of requests is held at the origin.
    AwaitHold { gate: String, count: usize },
    /// Releases all requests that wait, or will wait, at a hold.
    Release { gate: String },
    /// Waits until the origin has received this number of requests.
    OriginSaw { count: usize, only: Option<RequestPattern> },
    /// Checks the last request that the origin has received.
    OriginLast { only: Option<RequestPattern>, fields: Vec<FieldTest>, body: Option<BodyTest> },
    /// Waits until a number in the subject's `GET /v1/stats` is as expected.
    Stat { name: String, comparison: Comparison, number: f64 },
    /// Invalidates through the control API, and checks the number of removed pages.
    Invalidate { what: Invalidation, count: Option<u64> },
    /// Sends any other request to the control API.
    Admin { message: Message, expect: Expectation },
}

/// A selection of requests: a method (or any) and a path pattern with `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPattern {
    /// The method; `None` is any.
    pub method: Option<String>,
    /// The path and query; `*` matches any text.
    pub pattern: String,
}

/// The message that a client sends.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Message {
    /// A normal request. `fields` contains a `host` unless the scenario removed it.
    Http { method: String, target: Text, fields: Vec<(String, Text)>, body: Option<Text> },
    /// Literal bytes.
    Raw(Text),
}

/// The pages that the control API invalidates.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Invalidation {
    Tags(Vec<Text>),
    Urls(Vec<Text>),
    All,
}

/// The expectation for an answer. Only what is given is checked.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The status, or that there is no answer.
    pub status: StatusTest,
    /// Whether the server must close the connection after the answer.
    pub closed: bool,
    /// Whether the content must be complete.
    pub end: ContentEnd,
    /// Whether an interim response must come first.
    pub interim: bool,
    /// Whether the content is decoded before it is checked.
    pub decoded: bool,
    /// The tests of header fields.
    pub fields: Vec<FieldTest>,
    /// The test of the content.
    pub body: Option<BodyTest>,
    /// The tests of parameters in the last member of `Cache-Status` (RFC 9211 section 2).
    pub cache: Vec<CacheTest>,
}

/// How the content must end. RFC 9112 section 8: if the origin breaks off, a proxy may still be able to report
/// it (502), or must break off too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEnd {
    /// The content is complete.
    Whole,
    /// The content breaks off.
    Cut,
    /// The content breaks off with any status, or it is complete with the expected status.
    CutOrStatus,
}

/// The status that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusTest {
    /// One of these statuses.
    OneOf(Vec<u16>),
    /// Any status of a class: 5 for `5xx`.
    Class(u16),
    /// Any status.
    Any,
    /// The connection ends without an answer.
    NoAnswer,
}

/// A test of a header field. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTest {
    /// One of its lines, or all of them joined by `, `, equals this text.
    Is(String, Text),
    /// Its joined lines contain this text.
    Contains(String, Text),
    /// The field is present.
    Present(String),
    /// The field is absent.
    Absent(String),
    /// The field is present, and its value is saved as the placeholder `{$name}`.
    Keep(String, String),
}

/// A test of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyTest {
    /// The content equals this text.
    Is(Text),
    /// The content contains this text.
    Contains(Text),
    /// The content does not contain this text.
    Lacks(Text),
}

/// A test of a `Cache-Status` parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheTest {
    /// The parameter is present and true.
    Has(String),
    /// The parameter is absent.
    Lacks(String),
    /// The value of the parameter equals this.
    Is(String, String),
    /// The value of the parameter contains this.
    Contains(String, String),
    /// The value of the parameter is a number that satisfies this comparison.
    Number(String, Comparison, f64),
    /// `detail` is not this reason.
    NotReason(String),
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    AtLeast,
    AtMost,
}

/// A rule of the origin: an answer, and the requests it is for.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The line number in the file.
    pub line: usize,
    /// The requests that the rule matches.
    pub which: RequestPattern,
    /// Tests of the request's header fields.
    pub conditions: Vec<FieldTest>,
    /// The answer to the request.
    pub answer: Answer,
}

/// An answer of the origin, with its faults.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The hold before anything is sent.
    pub hold: Option<String>,
    /// The hold between the header section and the content.
    pub hold_body: Option<String>,
    /// Whether a 103 (Early Hints) is sent first.
    pub interim: bool,
    /// The framing of the content (RFC 9112 section 6).
    pub framing: Framing,
    /// Whether the content is sent byte by byte.
    pub trickle: bool,
    /// Whether the content is encoded according to the answer's `Content-Encoding`.
    pub encoded: bool,
    /// Whether the connection ends in the middle of the content.
    pub cut: bool,
    /// Whether the connection ends after the answer, which announces it.
    pub close: bool,
    /// The kind of answer.
    pub kind: AnswerKind,
}

/// The framing of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// The reaction of the origin to a request.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum AnswerKind {
    /// An HTTP response.
    Response { status: u16, fields: Vec<(String, Text)>, body: Text },
    /// Sends these bytes and closes.
    Raw(Text),
    /// Closes without an answer.
    Refuse,
    /// Never answers; the connection ends with the scenario.
    Hang,
}
