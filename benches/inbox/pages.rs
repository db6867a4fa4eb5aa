//! Requests for pages, one after the other over one connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use support::client::Wire;

use crate::filters::Filter;
use crate::process::Process;
use crate::table::{Row, Times};
use crate::{Outcome, token};

/// Requests for the first page by each filter, after a few that are not measured.
const FIRST_PAGES: usize = 200;
const WARM_UP: usize = 10;
/// Pages behind the first one; a shorter list is read again.
const PAGES_BEHIND: usize = 60;

/// A client with a token.
pub(crate) struct Client {
    wire: Wire,
    authorization: String,
}

struct Page {
    took: Duration,
    asks: usize,
    next: Option<String>,
}

impl Client {
    pub(crate) fn open(server: SocketAddr) -> Outcome<Self> {
        let authorization = format!("Bearer {}", token::signed());
        Ok(Self { wire: Wire::open(server)?, authorization })
    }

    /// Measures pages of a server, which does nothing else.
    pub(crate) fn measure(&mut self, filter: Filter, server: Process) -> Outcome<Row> {
        for _ in 0..WARM_UP {
            self.page(&filter.query, None)?;
        }
        let (mut first, mut behind, mut asks, mut second) = (Vec::new(), Vec::new(), 0, None);
        let spent = server.spent()?;
        for _ in 0..FIRST_PAGES {
            let page = self.page(&filter.query, None)?;
            first.push(page.took);
            (asks, second) = (page.asks, page.next);
        }
        let cpu = (server.spent()? - spent).cpu / u32::try_from(FIRST_PAGES)?;
        let mut next = second.clone();
        while behind.len() < PAGES_BEHIND
            && let Some(cursor) = next.or_else(|| second.clone())
        {
            let page = self.page(&filter.query, Some(&cursor))?;
            behind.push(page.took);
            next = page.next;
        }
        Ok(Row { filter, asks, first: Times::of(first), cpu, behind: Times::of(behind) })
    }

    /// Times a page from the request until the last byte of its answer.
    fn page(&mut self, query: &str, cursor: Option<&str>) -> Outcome<Page> {
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/inbox?{}", format!("{query}{cursor}").trim_start_matches('&'));
        let headers = [("authorization", &*self.authorization)];
        let begun = Instant::now();
        self.wire.send("GET", &path, &headers, None)?;
        let reply = self.wire.reply()?;
        let took = begun.elapsed();
        if reply.status != 200 {
            return Err(format!("{path}: {} {}", reply.status, reply.text()).into());
        }
        let data = reply.data();
        let asks = data["asks"].as_array().ok_or("no asks")?.len();
        Ok(Page { took, asks, next: data["nextCursor"].as_str().map(str::to_owned) })
    }
}
