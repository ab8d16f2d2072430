"""A self-check that users can ask for on their own robot."""

from phipsi.verification.all_checks import verify
from phipsi.verification.report import Check, Verification

__all__ = ["Check", "Verification", "verify"]
