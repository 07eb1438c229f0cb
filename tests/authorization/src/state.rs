//! The server's state: keys, clients, codes and tokens.

use std::collections::{HashMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::config::{Client, Config, TokenFormat};
use crate::exchange::Requests;
use crate::keys::{Key, random_text};

/// Number of nonces that are valid at the same time: more than any test has requests in flight.
const NONCES: usize = 256;

pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) origin: String,
    /// Newest first; the first one signs. Older ones stay in the set.
    pub(crate) keys: Vec<Key>,
    pub(crate) keys_made: usize,
    pub(crate) clients: HashMap<String, Client>,
    /// Authorizations that wait for the user's decision.
    pub(crate) pending: HashMap<String, Code>,
    pub(crate) codes: HashMap<String, Code>,
    pub(crate) families: HashMap<String, Family>,
    pub(crate) refresh_tokens: HashMap<String, RefreshToken>,
    pub(crate) access_tokens: HashMap<String, AccessToken>,
    /// Ids of proofs and assertions, each of which is accepted once.
    pub(crate) seen: std::collections::HashSet<String>,
    pub(crate) nonces: VecDeque<String>,
    pub(crate) requests: Requests,
}

/// A code, with what it was issued for.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) client_id: String,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
    pub(crate) nonce: Option<String>,
    pub(crate) jkt: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) expires: i64,
    /// The family of its tokens, once it was used.
    pub(crate) family: Option<String>,
}

/// All tokens of one consent.
#[derive(Clone)]
pub(crate) struct Family {
    pub(crate) client_id: String,
    pub(crate) subject: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) jkt: Option<String>,
    pub(crate) revoked: bool,
}

pub(crate) struct RefreshToken {
    pub(crate) family: String,
    pub(crate) used: bool,
    pub(crate) expires: i64,
}

pub(crate) struct AccessToken {
    pub(crate) family: String,
    pub(crate) claims: Value,
    pub(crate) revoked: bool,
}

impl State {
    pub(crate) fn new(config: Config, origin: String) -> Self {
        let key = Key::generate(config.algorithm, 0);
        Self {
            config,
            origin,
            keys: vec![key],
            keys_made: 1,
            clients: HashMap::new(),
            pending: HashMap::new(),
            codes: HashMap::new(),
            families: HashMap::new(),
            refresh_tokens: HashMap::new(),
            access_tokens: HashMap::new(),
            seen: Default::default(),
            nonces: VecDeque::new(),
            requests: Requests::default(),
        }
    }

    pub(crate) fn issuer(&self) -> String {
        format!("{}{}", self.origin, self.config.issuer_path)
    }

    /// The URL of an endpoint of the issuer.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.issuer())
    }

    /// Seconds since 1970, by the server's clock.
    pub(crate) fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs() as i64) + self.config.clock_ahead
    }

    /// Signs with another key from now on; the old ones stay in the set if `keep`.
    pub(crate) fn rotate_keys(&mut self, keep: bool) {
        let key = Key::generate(self.config.algorithm, self.keys_made);
        self.keys_made += 1;
        if !keep {
            self.keys.clear();
        }
        self.keys.insert(0, key);
    }

    /// The key that signs, of the configured algorithm.
    pub(crate) fn key(&mut self) -> &Key {
        if self.keys[0].algorithm() != self.config.algorithm {
            self.rotate_keys(true);
        }
        &self.keys[0]
    }

    /// Whether an id is new. Records it.
    pub(crate) fn is_new(&mut self, id: String) -> bool {
        self.seen.insert(id)
    }

    pub(crate) fn new_nonce(&mut self) -> String {
        let nonce = random_text();
        if self.nonces.len() == NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back(nonce.clone());
        nonce
    }

    /// The claims of an access token, without those that a caller adds.
    pub(crate) fn claims(&self, family: &Family, scopes: &[String], resources: &[String]) -> Value {
        let now = self.now();
        let audience: Value = match resources {
            [] => self.issuer().into(),
            [one] => one.as_str().into(),
            several => several.into(),
        };
        let subject = family.subject.as_ref().unwrap_or(&family.client_id);
        let mut claims = json!({
            "iss": self.issuer(),
            "sub": subject,
            "aud": audience,
            "exp": now + self.config.token_lifetime,
            "iat": now,
            "jti": random_text(),
            "client_id": family.client_id,
            "scope": scopes.join(" "),
        });
        if let Some(jkt) = &family.jkt {
            claims["cnf"] = json!({"jkt": jkt});
        }
        claims
    }

    /// Issues an access token.
    pub(crate) fn issue_access_token(
        &mut self,
        id: &str,
        scopes: &[String],
        resources: &[String],
    ) -> String {
        let claims = self.claims(&self.families[id], scopes, resources);
        let token = match self.config.tokens {
            TokenFormat::Jwt => self.key().sign(&json!({"typ": "at+jwt"}), &claims),
            TokenFormat::Opaque => random_text(),
        };
        let access = AccessToken {
            family: id.to_owned(),
            claims,
            revoked: false,
        };
        self.access_tokens.insert(token.clone(), access);
        token
    }

    /// Issues a refresh token.
    pub(crate) fn issue_refresh_token(&mut self, id: &str) -> String {
        let token = random_text();
        let refresh = RefreshToken {
            family: id.to_owned(),
            used: false,
            expires: self.now() + self.config.refresh_lifetime,
        };
        self.refresh_tokens.insert(token.clone(), refresh);
        token
    }

    /// Revokes all tokens of one consent.
    pub(crate) fn revoke_family(&mut self, id: &str) {
        if let Some(family) = self.families.get_mut(id) {
            family.revoked = true;
        }
    }

    /// The claims of an access token of this server if it is valid now.
    pub(crate) fn active_claims(&self, token: &str) -> Option<&Value> {
        let access = self.access_tokens.get(token)?;
        let family = self.families.get(&access.family)?;
        let expires = access.claims["exp"].as_i64()?;
        (!access.revoked && !family.revoked && expires > self.now()).then_some(&access.claims)
    }
}
