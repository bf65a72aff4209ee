/*
 * The search in a site that is read from files: browsers start no Worker from file:, so an iframe runs its script.
 * After iframe-worker, https://github.com/squidfunk/iframe-worker, of which this is the part that the search needs:
 *
 * Copyright (c) 2020-2022 Martin Donath <martin.donath@squidfunk.com>
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to
 * deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or
 * sell copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in
 * all copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NON-INFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING
 * FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
 * IN THE SOFTWARE.
 */
(() => {
  "use strict";

  function postMessageToParent(message, origin) {
    parent.postMessage(message, origin || "*");
  }

  function importScriptsInOrder(...urls) {
    return urls.reduce(
      (before, url) =>
        before.then(
          () =>
            new Promise((resolve) => {
              const script = document.createElement("script");
              script.src = url;
              script.onload = resolve;
              document.body.appendChild(script);
            })
        ),
      Promise.resolve()
    );
  }

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const iframe = document.createElement("iframe");
      iframe.hidden = true;
      document.body.appendChild((this.iframe = iframe));
      const inside = iframe.contentWindow;
      inside.document.open();
      inside.document.write(
        "<html><body><script>" +
          `postMessage=${postMessageToParent};importScripts=${importScriptsInOrder};` +
          `</script><script src="${url}?${+Date.now()}"></script></body></html>`
      );
      inside.document.close();
      window.addEventListener("message", (this.received = (event) => {
        if (event.source !== iframe.contentWindow) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        if (this.onmessage) this.onmessage(event);
      }));
      this.ready = new Promise((resolve) => {
        inside.onload = resolve;
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        this.iframe.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
      });
    }

    terminate() {
      window.removeEventListener("message", this.received);
      this.iframe.remove();
    }
  }

  if (location.protocol === "file:") window.Worker = IFrameWorker;
})();
