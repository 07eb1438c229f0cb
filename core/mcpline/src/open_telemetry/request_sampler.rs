//! Decides whether a request is sampled before its span is made.

use std::cell::RefCell;
use std::fmt;

use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, SamplingDecision, SamplingResult, ShouldSample,
    TracerProviderBuilder,
};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer;

use crate::span;
use crate::sync::Arc;
use crate::trace_context::TraceContext;

/// Asks a sampler before the span of a request is made, so that requests which are not sampled cost little.
///
/// `tracing-opentelemetry` asks the sampler when a span with all its attributes exists. With this, servers and clients ask it
/// first. It is the sampler of the provider and the filter of the layer:
///
/// ```
/// use mcpline::open_telemetry::RequestSampler;
/// use opentelemetry::trace::TracerProvider as _;
/// use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
/// use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
///
/// let sampler = RequestSampler::new(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(0.01))));
/// let provider = sampler.configure(SdkTracerProvider::builder()).build();
/// let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("weather"));
/// let subscriber = tracing_subscriber::registry().with(layer.with_filter(sampler));
/// # drop(subscriber);
/// ```
///
/// The trace context of a request that is not sampled is current in its handler, and in the middleware of a client, and requests carry
/// it. So spans and requests below it belong to the same trace, and samplers that ask for the parent do not sample them either. Other layers of the subscriber still see the span, with
/// the field `sampled`, which is false. The layer with this filter does not get the records of requests (targets `mcpline::requests` and
/// `mcpline::requests::client`):
/// spans have the same contents.
///
/// The sampler sees the method of a request, such as `tools/call`, in place of the span's name, and no attributes.
#[derive(Clone)]
pub struct RequestSampler {
    sampler: Arc<dyn ShouldSample>,
    ids: RandomIdGenerator,
}

/// What the sampler says about a request, at a server or a client.
pub(crate) enum Sampling {
    /// The layer has no [`RequestSampler`]: its sampler decides later.
    Later,
    Sampled(Decision),
    /// The context is that of the code that the request runs.
    Dropped(Context),
}

/// The decision that a request is sampled. Its span must be made within it.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    trace: TraceId,
    result: SamplingResult,
}

thread_local! {
    /// The decision about the span that is being made.
    static DECISION: RefCell<Option<Decision>> = const { RefCell::new(None) };
}

impl RequestSampler {
    /// Creates one that asks this sampler.
    pub fn new(sampler: impl ShouldSample + 'static) -> Self {
        Self::of(Box::new(sampler))
    }

    pub(crate) fn of(sampler: Box<dyn ShouldSample>) -> Self {
        Self {
            sampler: Arc::from(sampler),
            ids: RandomIdGenerator::default(),
        }
    }

    /// Makes it the sampler of a provider, and the generator of its ids.
    pub fn configure(&self, provider: TracerProviderBuilder) -> TracerProviderBuilder {
        provider
            .with_sampler(self.clone())
            .with_id_generator(self.clone())
    }

    fn sample(&self, method: &str, kind: &SpanKind, parent: &Context) -> Sampling {
        let of_parent = parent.span();
        let parent_context = of_parent.span_context();
        let trace = match parent_context.is_valid() {
            true => parent_context.trace_id(),
            false => self.ids.new_trace_id(),
        };
        let sampler = &self.sampler;
        let result = sampler.should_sample(Some(parent), trace, method, kind, &[], &[]);
        if result.decision != SamplingDecision::Drop {
            return Sampling::Sampled(Decision { trace, result });
        }
        if parent_context.is_valid() && !parent_context.is_sampled() {
            return Sampling::Dropped(parent.clone());
        }
        // The parent's id stays, so that spans below which are sampled after all have a parent that exists.
        let span = match parent_context.is_valid() {
            true => parent_context.span_id(),
            false => self.ids.new_span_id(),
        };
        let flags = parent_context.trace_flags().with_sampled(false);
        let own = SpanContext::new(trace, span, flags, true, result.trace_state);
        Sampling::Dropped(parent.with_remote_span_context(own))
    }
}

impl fmt::Debug for RequestSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestSampler")
            .field(&self.sampler)
            .finish()
    }
}

impl Sampling {
    /// Asks the sampler of this thread's subscriber about a request. Without a parent from a message it has the current one.
    pub(crate) fn of(method: &str, kind: &SpanKind, parent: Option<&TraceContext>) -> Self {
        tracing::dispatcher::get_default(|subscriber| {
            let Some(sampler) = subscriber.downcast_ref::<RequestSampler>() else {
                return Self::Later;
            };
            match parent {
                Some(parent) => sampler.sample(method, kind, &super::context_of(parent)),
                None => Context::map_current(|parent| sampler.sample(method, kind, parent)),
            }
        })
    }
}

impl Decision {
    /// Makes a span that is sampled as decided.
    pub(crate) fn apply<T>(self, make: impl FnOnce() -> T) -> T {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                DECISION.take();
            }
        }
        let _reset = Reset;
        DECISION.set(Some(self));
        make()
    }
}

impl ShouldSample for RequestSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let decided = DECISION.take().filter(|decided| decided.trace == trace);
        match decided {
            Some(decided) => decided.result,
            None => self
                .sampler
                .should_sample(parent, trace, name, kind, attributes, links),
        }
    }
}

impl IdGenerator for RequestSampler {
    fn new_trace_id(&self) -> TraceId {
        let decided = DECISION.with_borrow(|decided| Some(decided.as_ref()?.trace));
        decided.unwrap_or_else(|| self.ids.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.ids.new_span_id()
    }
}

impl<S: Subscriber> layer::Filter<S> for RequestSampler {
    fn enabled(&self, metadata: &Metadata<'_>, _: &layer::Context<'_, S>) -> bool {
        is_exported(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match is_exported(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }
}

fn is_exported(metadata: &Metadata<'_>) -> bool {
    match metadata.target() {
        span::TARGET => metadata.fields().field(span::SAMPLED).is_none(),
        "mcpline::requests" | "mcpline::requests::client" => false,
        _ => true,
    }
}
