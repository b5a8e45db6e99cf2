//! Who the commands are, and whom they trust: where the authority's certificate, a certificate of
//! one's own and a token are found.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use quorate_client::{Tls, Token};

/// Whom to trust, and what to show.
#[derive(clap::Args, Clone, Default, Debug)]
pub(crate) struct Credentials {
    /// The certificate of the cluster's authority (ca.crt), for servers with https. Without it:
    /// $QUORATE_CA, or quorate/ca.crt in your configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,
    /// A certificate that says who you are, for servers with https; --key names its key. Without
    /// it: $QUORATE_CERT, $CREDENTIALS_DIRECTORY/quorate-client.crt, or quorate/client.crt in your
    /// configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    cert: Option<PathBuf>,
    /// The key of that certificate. Without it: $QUORATE_KEY, or client.key where client.crt is.
    #[arg(long, value_name = "FILE", global = true)]
    key: Option<PathBuf>,
    /// A file with the token that gives you rights. Without it, and without --cert: $QUORATE_TOKEN,
    /// $CREDENTIALS_DIRECTORY/quorate-token, or quorate/token in your configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

/// A token; in the environment, since others can read the arguments of a process.
const TOKEN: &str = "QUORATE_TOKEN";
/// The authority's certificate.
const AUTHORITY: &str = "QUORATE_CA";
/// A certificate of one's own, and its key.
const CERTIFICATE: &str = "QUORATE_CERT";
const KEY: &str = "QUORATE_KEY";
/// Where systemd puts what `LoadCredential` names.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

impl Credentials {
    /// Whom to trust, if that was said, and the certificate to show, if there is one.
    pub(crate) fn tls(&self, place: &Place, servers: &[String]) -> anyhow::Result<Option<Tls>> {
        let ca = self.authority(place);
        let shown = self.certificate(place)?;
        if self.cert.is_some() && !servers.iter().any(|server| server.starts_with("https://")) {
            bail!(
                "a certificate is shown to servers with https alone, and {} is none; nothing was \
                 asked: name one with --server https://HOST:PORT, or leave out --cert and --key",
                servers.join(", ")
            );
        }
        let Some(ca) = ca else {
            if self.cert.is_some() {
                bail!(
                    "--cert says who you are, and nothing says whom to trust; nothing was asked: \
                     name the certificate of the cluster's authority with --ca or {AUTHORITY}"
                );
            }
            return Ok(None);
        };
        let roots = read(&ca)?;
        let Some((certificate, key)) = shown else {
            let tls = Tls::trusting(&roots).with_context(|| ca.display().to_string())?;
            return Ok(Some(tls));
        };
        // Apart, so that whoever reads the complaint knows which file is meant.
        Tls::trusting(&roots).with_context(|| ca.display().to_string())?;
        let tls = Tls::showing(&roots, &read(&certificate)?, &read(&key)?).with_context(|| {
            let (certificate, key) = (certificate.display(), key.display());
            format!(
                "{certificate} cannot be shown with the key {key}; nothing was asked: `quorate \
                 cert client` makes files that belong together"
            )
        })?;
        Ok(Some(tls))
    }

    /// The authority's certificate, if one was named or is where one may be.
    fn authority(&self, place: &Place) -> Option<PathBuf> {
        let named = self.ca.clone().or_else(|| place.file_in(AUTHORITY));
        named.or_else(|| place.own("ca.crt").filter(|file| file.exists()))
    }

    /// The files with certificates that would be used.
    pub(crate) fn files(&self, place: &Place) -> Vec<PathBuf> {
        let own = self.certificate(place).ok().flatten().map(|(certificate, _)| certificate);
        self.authority(place).into_iter().chain(own).collect()
    }

    /// The first certificate of those places where one may be, and its key. One that was named must
    /// be there; one that nobody named may not.
    fn certificate(&self, place: &Place) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
        let named = |cert: Option<PathBuf>, key: Option<PathBuf>, names: [&str; 2]| {
            let [cert_name, key_name] = names;
            match (cert, key) {
                (Some(cert), Some(key)) => Ok(Some((cert, key))),
                (None, None) => Ok(None),
                (Some(cert), None) => bail!(
                    "{} is of no use without its key; nothing was asked: name it with {key_name}",
                    cert.display()
                ),
                (None, Some(key)) => bail!(
                    "{} is of no use without its certificate; nothing was asked: name it with \
                     {cert_name}",
                    key.display()
                ),
            }
        };
        if let Some(pair) = named(self.cert.clone(), self.key.clone(), ["--cert", "--key"])? {
            return Ok(Some(pair));
        }
        // Whoever names a token is who the token says.
        if self.token_file.is_some() {
            return Ok(None);
        }
        let (cert, key) = (place.file_in(CERTIFICATE), place.file_in(KEY));
        if let Some(pair) = named(cert, key, [CERTIFICATE, KEY])? {
            return Ok(Some(pair));
        }
        let given = place.file_in(CREDENTIALS).map(|folder| folder.join("quorate-client.crt"));
        let found = [given, place.own("client.crt")].into_iter().flatten().find(|it| it.exists());
        Ok(found.map(|cert| {
            let key = cert.with_extension("key");
            (cert, key)
        }))
    }

    /// The first token of those places where one may be. A file that was named must be there; one
    /// that nobody named may not. Whoever names a certificate is who the certificate says: a node
    /// would heed a token before it.
    pub(crate) fn token(&self, place: &Place) -> anyhow::Result<Option<Token>> {
        if let Some(file) = &self.token_file {
            return Ok(Some(read_token(file)?));
        }
        if self.cert.is_some() {
            return Ok(None);
        }
        if let Some(token) = place.variable(TOKEN) {
            return Ok(Some(Token(token.to_string_lossy().trim().to_owned())));
        }
        let given = place.file_in(CREDENTIALS).map(|folder| folder.join("quorate-token"));
        match [given, place.own("token")].into_iter().flatten().find(|file| file.exists()) {
            Some(file) => Ok(Some(read_token(&file)?)),
            None => Ok(None),
        }
    }
}

/// The environment of this process, or of a test.
#[derive(Clone, Copy)]
pub(crate) struct Place(pub(crate) fn(&str) -> Option<OsString>);

impl Place {
    pub(crate) const HERE: Place = Place(|name| std::env::var_os(name));

    fn variable(self, name: &str) -> Option<OsString> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn file_in(self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from)
    }

    /// A file of ours in the user's configuration directory.
    fn own(self, name: &str) -> Option<PathBuf> {
        let home = || self.file_in("HOME").map(|home| home.join(".config"));
        let folder = self.file_in("XDG_CONFIG_HOME").or_else(home)?;
        Some(folder.join("quorate").join(name))
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file)
        .with_context(|| format!("cannot read {}; nothing was asked", file.display()))
}

fn read_token(file: &Path) -> anyhow::Result<Token> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the token in {shown}; nothing was asked"))?;
    match text.trim() {
        "" => bail!("{shown} is empty: it should have a token; nothing was asked"),
        token => Ok(Token(token.to_owned())),
    }
}
