from kdissect.exchange import Exchange as Exchange
from kdissect.explaining import Report as Report
from kdissect.explaining import explain as explain
from kdissect.insight.finding import Finding as Finding
from kdissect.limits import Limits as Limits
from kdissect.model import CaptureError as CaptureError
from kdissect.model import Fault as Fault
from kdissect.protocol.codec import Schema as Schema
from kdissect.protocol.codec import schema as schema
from kdissect.reading import read as read
from kdissect.record.sets import RecordSet as RecordSet
from kdissect.session.conversation import Connection as Connection
from kdissect.session.conversation import Conversation as Conversation

__version__: str
__all__: list[str]

def records(data: bytes, limits: Limits = ...) -> RecordSet:
    """The batches of a record set, as Produce requests, Fetch responses and log segments hold it."""
