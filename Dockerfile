# pagemill serve: docker build -t pagemill-server .   (see docs/serve.md)
FROM python:3.12-slim AS build
COPY . /source
# In an environment of its own, which is all that the second stage takes: no compiler, no cache, no source.
RUN python -m venv /opt/pagemill \
 && /opt/pagemill/bin/pip install --no-cache-dir "/source[client,datasets,hub,korean,mcp,search,serve,vlm]"

FROM python:3.12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends tesseract-ocr-rus tesseract-ocr-ara tesseract-ocr-heb tesseract-ocr-hin \
    tesseract-ocr-tha tesseract-ocr-vie \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --no-create-home --home-dir /data pagemill \
 && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /opt/pagemill /opt/pagemill
ENV PATH=/opt/pagemill/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
# By number: Kubernetes' runAsNonRoot does not look up names.
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
ENTRYPOINT ["pagemill"]
# Others reach this address, so the server wants keys: docker run -e PAGEMILL_SERVE_KEYS=...
CMD ["serve", "--host", "0.0.0.0", "--port", "8080", "--data", "/data"]
