//! The service that runs a keyed request once and passes any other through untouched.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::Service;

use super::{
    Settings, Shared,
    admit::{self, Admitted},
    answer,
    execute::{self, Live},
};
use crate::{
    BoxError,
    domain::IdempotencyKey,
    gateway::{RequestId, ResponseBody, problem::refuse},
    telemetry::Outcome,
};

/// Runs a keyed request once; passes any other request through untouched.
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    shared: Shared,
    settings: Arc<Settings>,
}

/// Resolves to the answer: the wrapped service's, a stored one, or a problem.
pub struct ResponseFuture<F, B> {
    kind: Kind<F, B>,
}

type Keyed<B> = Pin<Box<dyn Future<Output = Response<ResponseBody<B>>> + Send>>;

enum Kind<F, B> {
    /// Not keyed. Boxed only where it must be: most requests of a route are keyed.
    Through(Pin<Box<F>>),
    Keyed(Keyed<B>),
}

// === impl Idempotency ===

impl<S> Idempotency<S> {
    pub(super) fn new(inner: S, shared: Shared, settings: Arc<Settings>) -> Self {
        Self { inner, shared, settings }
    }

    /// Whether a request is keyed here; any other passes through untouched.
    pub(in crate::gateway) fn guards<B>(&self, request: &Request<B>) -> bool {
        let Settings { methods, required, header, .. } = &*self.settings;
        methods.contains(request.method()) && (*required || request.headers().contains_key(header))
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Idempotency<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send,
    ReqBody: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    ResBody: Body<Data = Bytes> + Send + Unpin + 'static,
    ResBody::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        if !self.guards(&request) {
            return ResponseFuture { kind: Kind::Through(Box::pin(self.inner.call(request))) };
        }
        let kind = match admit::key(request.headers(), &self.settings) {
            Ok(key) => {
                // Only the service that `poll_ready` saw is ready. It goes into the future; its
                // clone, which is not, stays behind.
                let clone = self.inner.clone();
                let ready =
                    Self { inner: std::mem::replace(&mut self.inner, clone), ..self.clone() };
                Kind::Keyed(Box::pin(ready.keyed(request, key)))
            }
            Err(problem) => {
                let answer = refuse(problem, &RequestId::of(request.extensions()));
                Kind::Keyed(Box::pin(std::future::ready(answer)))
            }
        };
        ResponseFuture { kind }
    }
}

impl<S> Idempotency<S> {
    async fn keyed<ReqBody, ResBody>(
        self,
        request: Request<ReqBody>,
        key: IdempotencyKey,
    ) -> Response<ResponseBody<ResBody>>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
        S::Error: Into<BoxError> + Send,
        S::Future: Send,
        ReqBody: Body<Data = Bytes> + From<Bytes> + Send + 'static,
        ResBody: Body<Data = Bytes> + Send + Unpin + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let Self { inner, shared, settings } = self;
        let request_id = RequestId::of(request.extensions());
        let Admitted { call, parts } =
            match admit::admit(request, key, &request_id, &shared, &settings).await {
                Ok(admitted) => admitted,
                Err(problem) => return refuse(problem, &request_id),
            };
        let (executing, subject) = (Arc::clone(&settings), Arc::clone(&call.subject));
        let verdict = shared
            .arbiter
            .judge::<Live<ResBody>, _, _>(call, move |attempt| async move {
                let request = execute::request::<ReqBody>(parts, &subject, &attempt, &executing);
                execute::execute(inner, request, attempt, &executing).await
            })
            .await;
        answer::answer(verdict, &settings, &request_id)
    }
}

// === impl ResponseFuture ===

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.kind {
            Kind::Through(future) => {
                let mut response = ready!(future.as_mut().poll(cx))?.map(ResponseBody::live);
                response.extensions_mut().insert(Outcome::Passed);
                Poll::Ready(Ok(response))
            }
            Kind::Keyed(future) => future.as_mut().poll(cx).map(Ok),
        }
    }
}

impl<F, B> std::fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResponseFuture")
    }
}
