//! A story as data: what the parser makes of a file and the engine plays.
//!
//! Nothing here is checked or filled in beyond its form: a [`Text`] still has its blanks
//! (`{now+10s}`), which are filled when the line is played. Whoever wants to list the stories, or
//! see that each reason occurs in one, reads these types.

use std::time::Duration;

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The file's path below its directory.
    pub name: String,
    /// What it shows, in a sentence.
    pub title: String,
    /// The sections of the standards it shows, such as `RFC9111#4.3.4`.
    pub spec: Vec<String>,
    /// TOML for the subject, a line each.
    pub config: Vec<String>,
    /// Further command line flags for the subject.
    pub flags: Vec<String>,
    /// Why the story is known to fail, if it is.
    pub pending: Option<String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Story {
    /// Whether the story moves the subject's clock.
    pub fn moves_clock(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Clock(_)))
    }
}

/// One line of the story, or one `origin` block.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line's number in the file, counted from 1.
    pub line: usize,
    /// The line as written.
    pub text: String,
    /// What it does.
    pub action: Action,
}

/// Text whose blanks, such as `{now}`, are filled when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

/// What a step does.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are the words of the lines
pub enum Action {
    /// Gives the origin further rules.
    Rules(Vec<Rule>),
    /// Sends a request and judges the answer.
    Ask { client: String, message: Message, expect: Expect },
    /// Sends a request and goes on (`&`).
    Send { client: String, message: Message },
    /// Waits for the answer to what was sent with `&`, and judges it.
    Collect { client: String, expect: Expect },
    /// Repeats a request until its answer is as expected.
    Repeat { client: String, message: Message, expect: Expect },
    /// Reads a further answer from the client's connection, and judges it.
    More { client: String, expect: Expect },
    /// The client closes its connection, whatever it waits for.
    Leave { client: String },
    /// Moves the subject's clock.
    Clock(Duration),
    /// The origin refuses connections from now on, and cuts those it has.
    OriginDown,
    /// The origin listens again, on the same port.
    OriginUp,
    /// Waits until so many requests wait at a hold of the origin.
    AwaitHold { gate: String, count: usize },
    /// Lets everything go that waits, or will wait, at a hold.
    Release { gate: String },
    /// How many requests the origin has seen; with `wait`, until it has.
    OriginSaw { wait: bool, count: usize, only: Option<Which> },
    /// What the last request that the origin has seen looked like.
    OriginLast { only: Option<Which>, fields: Vec<FieldTest>, body: Option<BodyTest> },
    /// A number of the subject's `GET /v1/stats`; with `wait`, until it is so.
    Stat { wait: bool, name: String, comparison: Comparison, number: f64 },
    /// An invalidation by the control interface, and how many pages it dropped.
    Invalidate { what: Invalidation, count: Option<u64> },
    /// Any other request to the control interface.
    Admin { message: Message, expect: Expect },
}

/// Which requests are meant: a method (or any) and a path pattern with `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    /// The method; `None` is any.
    pub method: Option<String>,
    /// The path and query; `*` stands for anything.
    pub pattern: String,
}

/// What a client sends.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Message {
    /// A request of the usual form. `fields` has a `host` unless the story took it out.
    Http { method: String, target: Text, fields: Vec<(String, Text)>, body: Option<Text> },
    /// Bytes as they are.
    Raw(Text),
}

/// What may be invalidated by the control interface.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Invalidation {
    Tags(Vec<Text>),
    Urls(Vec<Text>),
    All,
}

/// What an answer must be. What is not said is not checked.
#[derive(Clone, Debug)]
pub struct Expect {
    /// The status, or that there is no answer.
    pub status: StatusTest,
    /// The server must close the connection after it.
    pub closed: bool,
    /// Whether the content must come to its announced end.
    pub end: ContentEnd,
    /// An interim response must have come before it.
    pub interim: bool,
    /// The content is judged with its codings undone.
    pub decoded: bool,
    /// The header fields.
    pub fields: Vec<FieldTest>,
    /// The content.
    pub body: Option<BodyTest>,
    /// The parameters of the last member of `Cache-Status` (RFC 9211 section 2).
    pub cache: Vec<CacheTest>,
}

/// How content must end. RFC 9112 section 8: a proxy whose origin breaks off may still be able to
/// say so (502), or has to break off as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEnd {
    /// At its announced end.
    Whole,
    /// Before it.
    Cut,
    /// Before it with any status, or at it with the status that is expected.
    CutOrStatus,
}

/// A status that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusTest {
    /// One of these.
    OneOf(Vec<u16>),
    /// Any of a class: 5 for `5xx`.
    Class(u16),
    /// Any status at all.
    Any,
    /// The connection ends without an answer.
    NoAnswer,
}

/// What a header field must be. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTest {
    /// One of its lines, or all of them joined by `, `, is exactly this.
    Is(String, Text),
    /// Its lines joined contain this.
    Contains(String, Text),
    /// It is there.
    Present(String),
    /// It is not.
    Absent(String),
    /// It is there, and its value is from now on the blank `{$name}`.
    Keep(String, String),
}

/// What content must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyTest {
    /// Exactly this.
    Is(Text),
    /// This occurs in it.
    Contains(Text),
    /// This does not.
    Lacks(Text),
}

/// What a parameter of `Cache-Status` must be.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheTest {
    /// It is there and true.
    Has(String),
    /// It is not there.
    Lacks(String),
    /// Its value is this.
    Is(String, String),
    /// Its value contains this.
    Contains(String, String),
    /// Its value is a number that compares so.
    Number(String, Comparison, f64),
    /// `detail` is not this reason.
    NotReason(String),
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    AtLeast,
    AtMost,
}

/// What the origin answers to which requests.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The line's number in the file.
    pub line: usize,
    /// The requests it is for.
    pub which: Which,
    /// What their header fields must be.
    pub conditions: Vec<FieldTest>,
    /// The answer.
    pub answer: Answer,
}

/// An answer of the origin, with what goes wrong on its way.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The hold before anything is sent.
    pub hold: Option<String>,
    /// The hold between the header section and the content.
    pub hold_body: Option<String>,
    /// A 103 (Early Hints) comes first.
    pub interim: bool,
    /// How the content's end is told (RFC 9112 section 6).
    pub framing: Framing,
    /// The content goes out byte by byte.
    pub trickle: bool,
    /// The content is encoded as the answer's `Content-Encoding` says.
    pub encoded: bool,
    /// The connection ends half-way through the content.
    pub cut: bool,
    /// The connection ends after the answer, and the answer says so.
    pub close: bool,
    /// The answer itself.
    pub kind: AnswerKind,
}

/// How the content's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// What the origin does with a request.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum AnswerKind {
    /// Answers.
    Response { status: u16, fields: Vec<(String, Text)>, body: Text },
    /// Sends these bytes and closes.
    Raw(Text),
    /// Closes without an answer.
    Refuse,
    /// Never answers; the connection ends with the story.
    Hang,
}
