<?php

/**
 * Entities of Doctrine's own ORM, on SQLite, in place of ids.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;
use Doctrine\Persistence\ManagerRegistry;
use Pagewell\Attribute\Uses;
use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\RequestScope;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Bridge\Doctrine\ArgumentResolver\EntityValueResolver;
use Symfony\Bridge\Doctrine\Attribute\MapEntity;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\ExpressionLanguage\ExpressionLanguage;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ArgumentResolver;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

use function Pagewell\changed;
use function Pagewell\uses;

final class DoctrineEntitiesTest extends TestCase
{
    private EntityManager $entities;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Doctrine/ORM/autoload.php') === false) {
            self::markTestSkipped('Doctrine/ORM/autoload.php is not installed');
        }
        require_once 'Doctrine/ORM/autoload.php';
    }

    protected function setUp(): void
    {
        $configuration = ORMSetup::createAttributeMetadataConfiguration([__DIR__], true);
        $configuration->setAutoGenerateProxyClasses(3);
        method_exists($configuration, 'enableNativeLazyObjects') && PHP_VERSION_ID >= 80400 && $configuration->enableNativeLazyObjects(true);
        $configuration->setMiddlewares([new TransactionMiddleware()]);
        $this->entities = new EntityManager(DriverManager::getConnection(['driver' => 'pdo_sqlite', 'memory' => true], $configuration), $configuration);
        (new SchemaTool($this->entities))->createSchema([$this->entities->getClassMetadata(DoctrineNews::class)]);
        foreach (['The ferry', 'A gull'] as $title) {
            $this->entities->persist(new DoctrineNews($title));
        }
        $this->entities->flush();
        $this->entities->clear();
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testTheirPage(): void
    {
        RecordingChannel::install();
        uses('news', $this->entities->find(DoctrineNews::class, 2), $this->entities->getReference(DoctrineNews::class, 1));
        self::assertSame(['news:2', 'news:1', 'news:*'], RequestScope::current()->tags());
    }

    /** With Symfony's own resolver of entities (6.2 and newer). */
    public function testOneAmongTheArgumentsOfAController(): void
    {
        if (stream_resolve_include_path('Symfony/Bridge/Doctrine/ArgumentResolver/EntityValueResolver.php') === false) {
            self::markTestSkipped('Symfony has no EntityValueResolver here');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Bridge/Doctrine/autoload.php';
        require_once 'Symfony/Component/ExpressionLanguage/autoload.php';
        $registry = $this->createStub(ManagerRegistry::class);
        $registry->method('getManagerForClass')->willReturn($this->entities);
        $registry->method('getManager')->willReturn($this->entities);
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener(new RecordingClient()));
        $kernel = new HttpKernel($dispatcher, new ControllerResolver(), null, new ArgumentResolver(null, [new EntityValueResolver($registry, new ExpressionLanguage())]));
        foreach ([['title' => 'A gull'], ['news' => 'A gull', '_route_mapping' => ['title' => 'news']]] as $attributes) {
            $request = Request::create('/');
            $request->attributes->add(['_controller' => [new DoctrinePages(), isset($attributes['news']) ? 'mapped' : 'found']] + $attributes);
            $response = $kernel->handle($request);
            self::assertSame(['A gull', '"news:2", "news:*"'], [$response->getContent(), $response->headers->get('Cache-Groups')]);
        }
    }

    public function testTheirChangeWaitsForTheCommit(): void
    {
        $channel = RecordingChannel::install('POST');
        $this->entities->wrapInTransaction(function () use ($channel): void {
            $this->entities->persist($news = new DoctrineNews('A buoy'));
            $this->entities->flush();
            changed('news', $news);
            self::assertSame([], $channel->lines());
        });
        self::assertSame(['Cache-Group-Invalidation: "news", "news:3"'], $channel->lines());
    }

    public function testTheChangeOfARemovedOne(): void
    {
        $news = $this->entities->find(DoctrineNews::class, 2);
        $channel = RecordingChannel::install('POST');
        $this->entities->remove($news);
        $this->entities->flush();
        changed('news', $news);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:*"'], $channel->lines());
    }
}

/** Controllers of an application. */
final class DoctrinePages
{
    #[Uses('news:{news}')]
    public function found(#[MapEntity(mapping: ['title' => 'title'])] DoctrineNews $news): Response
    {
        return new Response($news->getTitle());
    }

    #[Uses('news:{news}')]
    public function mapped(#[MapEntity(expr: 'repository.findOneBy({title: news})')] DoctrineNews $news): Response
    {
        return new Response($news->getTitle());
    }
}

#[ORM\Entity]
class DoctrineNews
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column]
    private int $id;

    public function __construct(#[ORM\Column] private string $title)
    {
    }

    public function getId(): int
    {
        return $this->id;
    }

    public function getTitle(): string
    {
        return $this->title;
    }
}
