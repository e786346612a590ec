"""A retrieval chain of LangChain, offline: one handler, and the run is a trace with sources, scores, confidence and value."""

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler

PAGES = {
    "policy.md": "Refunds take 5 to 7 days after we have the parcel back.",
    "faq.md": "Parcels are sent back with the label in the box.",
    "jobs.md": "We are looking for engineers.",
}


def similarity_search_with_score(question: str) -> list[tuple[Document, float]]:
    """Plays a vector store: the share of the question's words that a page has."""
    words = set(question.lower().strip("?").split())
    found = [
        (Document(text, metadata={"source": name}), len(words & set(text.lower().strip(".").split())) / len(words))
        for name, text in PAGES.items()
    ]
    return sorted(found, key=lambda pair: -pair[1])[:2]


prompt = ChatPromptTemplate.from_template("Answer from this: {context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["Five to seven days after the parcel is back."])
search = RunnableLambda(similarity_search_with_score, name="search_pages")
context = search | (lambda found: "\n".join(document.page_content for document, _ in found))
chain = {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

grace = gk.Grace(store="memory:", domain="customer_service", evaluator=None, embedder=None)
# A pair's figure may be a similarity or a distance, so the handler has to know which.
handler = GraceCallbackHandler(grace, scores={"search_pages": "similarity"})

print(chain.invoke("How many days do refunds take?", {"callbacks": [handler]}))

(trace,) = grace.store.query()
for step in trace.steps:
    print(f"  {step.step_id} {step.type:<12} {step.tool.name if step.tool else (step.content or '')[:70]}")
print("found      ", trace.calls[0].search)
print("confidence ", trace.outcome.confidence, trace.confidence and trace.confidence.reason)
print("value      ", trace.metadata.quality_score)
