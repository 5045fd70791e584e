<?php

/**
 * An answer, complete before anything of it is sent.
 *
 * That order matters: what a page is made from must be known when its header section goes
 * out, and a page that fails half-way must become an error page, not half a page.
 */

declare(strict_types=1);

namespace News;

/** Status, fields and content. */
final class Response
{
    /** @param array<string, string> $fields by name */
    public function __construct(
        public readonly int $status,
        public readonly string $content,
        public readonly array $fields = ['Content-Type' => 'text/html; charset=utf-8'],
    ) {
    }

    /** A page of the site: a template of templates/, in the layout. */
    public static function page(string $template, string $title, mixed ...$values): self
    {
        return self::pageWith(200, $template, $title, ...$values);
    }

    /** The same with another status. */
    public static function pageWith(int $status, string $template, string $title, mixed ...$values): self
    {
        $content = Template::render($template, $values);
        return new self($status, Template::render('layout', ['title' => $title, 'content' => $content]));
    }

    /** The page for something that does not exist. */
    public static function notFound(): self
    {
        return self::pageWith(404, 'not-found', 'Not found');
    }

    /** After a write: the browser goes on with a GET (RFC 9110 section 15.4.4). */
    public static function seeOther(string $location): self
    {
        return new self(303, '', ['Location' => $location]);
    }

    /** Hands the answer to PHP. */
    public function send(): void
    {
        http_response_code($this->status);
        header_remove('X-Powered-By');
        foreach ($this->fields as $name => $value) {
            header("$name: $value");
        }
        if (str_starts_with($this->fields['Content-Type'] ?? '', 'text/html')) {
            header("Content-Security-Policy: default-src 'self'; frame-ancestors 'none'");
        }
        echo $this->content;
    }
}
