//! Tokens and rights of the charter, for administrators.

use hyper::Method;
use quorate_api::{
    AmendRequest, AmendedView, RightView, RightsView, TokenRequest, TokenView, TokensView,
};

use super::{ViewError, Views};
use crate::screen::escaped;

impl Views {
    /// Who is let in by a token at the node that answers.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn tokens(&self) -> Result<TokensView, ViewError> {
        self.ask(Method::GET, "/v1/tokens", None::<&()>).await
    }

    /// One token, without its secret.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn token(&self, name: &str) -> Result<TokenView, ViewError> {
        self.ask(Method::GET, &format!("/v1/tokens/{}", escaped(name)), None::<&()>).await
    }

    /// Makes a token of the charter, or gives one another secret.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn put_token(
        &self,
        name: &str,
        request: &TokenRequest,
    ) -> Result<AmendedView, ViewError> {
        self.ask(Method::PUT, &format!("/v1/tokens/{}", escaped(name)), Some(request)).await
    }

    /// Takes a token of the charter away.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn revoke_token(
        &self,
        name: &str,
        if_generation: Option<u64>,
        dry_run: bool,
    ) -> Result<AmendedView, ViewError> {
        let path = removed("tokens", name, if_generation, dry_run);
        self.ask(Method::DELETE, &path, None::<&()>).await
    }

    /// What tokens of the charter may do.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn rights(&self) -> Result<RightsView, ViewError> {
        self.ask(Method::GET, "/v1/rights", None::<&()>).await
    }

    /// One right, and who has it.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn right(&self, name: &str) -> Result<RightView, ViewError> {
        self.ask(Method::GET, &format!("/v1/rights/{}", escaped(name)), None::<&()>).await
    }

    /// Makes a right of the charter, or changes one.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn set_right(
        &self,
        name: &str,
        request: &AmendRequest,
    ) -> Result<AmendedView, ViewError> {
        self.ask(Method::PATCH, &format!("/v1/rights/{}", escaped(name)), Some(request)).await
    }

    /// Takes a right of the charter away that no token has.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub async fn delete_right(
        &self,
        name: &str,
        if_generation: Option<u64>,
        dry_run: bool,
    ) -> Result<AmendedView, ViewError> {
        let path = removed("rights", name, if_generation, dry_run);
        self.ask(Method::DELETE, &path, None::<&()>).await
    }
}

fn removed(what: &str, name: &str, if_generation: Option<u64>, dry_run: bool) -> String {
    let only = if_generation.map(|it| format!("&if_generation={it}")).unwrap_or_default();
    format!("/v1/{what}/{}?dry_run={dry_run}{only}", escaped(name))
}
