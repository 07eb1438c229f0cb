"""Sets up OpenTelemetry, as docs/observability.md says.

What spans are exported to is in OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_ENDPOINT. The provider exports what is left when
the process exits.
"""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def install(name: str) -> trace.Tracer:
    """Exports the spans of this program. Returns a tracer for its own."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return trace.get_tracer(name)
